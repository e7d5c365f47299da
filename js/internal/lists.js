// Operations on arrays by index: a page may have replaced methods and iterators of its arrays.

/** Appends a value. Returns the new length. */
export function append(list, value) {
  list[list.length] = value;
  return list.length;
}

export function each(list, work) {
  for (let index = 0; index < list.length; index++) work(list[index], index);
}

export function mapped(list, change) {
  const values = [];
  for (let index = 0; index < list.length; index++) values[index] = change(list[index], index);
  return values;
}

export function some(list, test) {
  for (let index = 0; index < list.length; index++) if (test(list[index])) return true;
  return false;
}

/** Returns a copy without the values that pass the test. */
export function removed(list, test) {
  const left = [];
  for (let index = 0; index < list.length; index++) if (!test(list[index])) append(left, list[index]);
  return left;
}

export function includes(list, value) {
  for (let index = 0; index < list.length; index++) if (list[index] === value) return true;
  return false;
}

export function joined(list) {
  let text = '';
  for (let index = 0; index < list.length; index++) text += index === 0 ? list[index] : `,${list[index]}`;
  return text;
}

const { sort, splice } = Array.prototype;

/** Removes the first `count` values. */
export function dropFirst(list, count) {
  Reflect.apply(splice, list, [0, count]);
}

/** Sorts strings by code unit. */
export function sortStrings(list) {
  return Reflect.apply(sort, list, []);
}

/** Returns a copy that JSON.stringify() writes as a list, even if arrays inherit a `toJSON`. */
export function plainList(list) {
  return Object.defineProperty(mapped(list, (value) => value), 'toJSON', { value: undefined });
}
