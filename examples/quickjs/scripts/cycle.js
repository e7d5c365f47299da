// Measures request and release in sequence, and the part of it that the engine takes.

const COUNT = 20_000;

async function cycle(name) {
  const start = performance.now();
  for (let turn = 0; turn < COUNT; turn++) await navigator.locks.request(name, () => {});
  return ((performance.now() - start) * 1000) / COUNT;
}

cycle('warm').then(() => cycle('name')).then((microseconds) => print(`${microseconds.toFixed(1)} µs a cycle`));
