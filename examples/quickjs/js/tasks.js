// Tasks and timers. The host runs all promise jobs after each task.

const { host } = globalThis;

const tasks = [];
let first = 0;

/** Timers by their number, in the order of their creation. */
const timers = new Map();
let last = 0;

export function addTask(task) {
  tasks.push(task);
}

/** Whether the next turn is for a timer, so that tasks and timers never starve each other. */
let isTimersTurn = false;

/** Runs the oldest task, or a timer that is due. Returns false if there is none. */
export function runTask() {
  isTimersTurn = !isTimersTurn;
  return isTimersTurn ? runTimer() || runOldest() : runOldest() || runTimer();
}

function runOldest() {
  if (first < tasks.length) {
    const task = tasks[first++];
    if (first === tasks.length) {
      tasks.length = 0;
      first = 0;
    }
    task();
    return true;
  }
  return false;
}

function runTimer() {
  if (timers.size === 0) return false;
  const [number, timer] = soonest();
  if (timer.at > host.now()) return false;
  if (timer.every === undefined) timers.delete(number);
  else timer.at += timer.every;
  timer.work(...timer.given);
  return true;
}

/** Returns the milliseconds until the next timer; undefined if there is none. */
export function untilTimer() {
  return timers.size === 0 ? undefined : Math.max(0, soonest()[1].at - host.now());
}

function soonest() {
  let found;
  for (const entry of timers) if (found === undefined || entry[1].at < found[1].at) found = entry;
  return found;
}

function start(work, delay, every, given) {
  timers.set(++last, { work, at: host.now() + Math.max(0, Number(delay) || 0), every, given });
  return last;
}

const stop = (number) => {
  timers.delete(number);
};

Object.assign(globalThis, {
  setTimeout: (work, delay, ...given) => start(work, delay, undefined, given),
  setInterval: (work, delay, ...given) => start(work, delay, Math.max(1, Number(delay) || 0), given),
  clearTimeout: stop,
  clearInterval: stop,
});
