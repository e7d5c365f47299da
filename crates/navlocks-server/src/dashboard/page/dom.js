// Creates and updates elements. No function parses markup, so text stays text.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'g', 'path', 'rect', 'line', 'circle', 'text', 'polyline', 'title', 'defs', 'marker', 'tspan']);

/** Creates an element. `on` is an object of listeners; other properties are attributes. */
export function h(tag, properties, ...children) {
  const { on, ...attributes } = properties ?? {};
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'width%') element.style.width = `${value}%`;
    else if (name === 'tint') element.style.background = value;
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.kept = { tint: attributes.tint, width: attributes['width%'], value: attributes.value, on };
  if (on !== undefined) for (const kind of Object.keys(on)) listen(element, kind);
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Adds one listener for a kind of event, which calls the handler of the latest version. */
function listen(element, kind) {
  element.addEventListener(kind, (event) => element.kept?.on?.[kind]?.(event));
}

/** Changes `old` into `next`, and keeps the focus, scroll positions and the selection. */
export function morph(old, next) {
  if (old.nodeType !== next.nodeType || old.nodeName !== next.nodeName || old.id !== next.id) {
    old.replaceWith(next);
    return next;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return old;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== 'style' && name !== 'open' && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== 'style' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const { tint, width, value, on } = next.kept ?? {};
  if (tint !== old.kept?.tint) old.style.background = tint ?? '';
  if (width !== old.kept?.width) old.style.width = width === undefined ? '' : `${width}%`;
  if (value !== undefined && old !== document.activeElement && old.value !== String(value)) old.value = value;
  for (const kind of Object.keys(on ?? {})) if (old.kept?.on?.[kind] === undefined) listen(old, kind);
  old.kept = next.kept;
  const children = [...next.childNodes];
  for (const [index, child] of children.entries()) {
    const present = old.childNodes[index];
    if (present === undefined) old.append(child);
    else morph(present, child);
  }
  while (old.childNodes.length > children.length) old.lastChild.remove();
  // The value of a select needs its options.
  if (value !== undefined && old !== document.activeElement && old.value !== String(value)) old.value = value;
  return old;
}
