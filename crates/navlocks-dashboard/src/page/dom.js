// Creates and updates elements. No function parses markup, so text stays text.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'g', 'path', 'rect', 'line', 'circle', 'text', 'polyline', 'title', 'defs', 'marker', 'tspan']);

/**
 * Creates an element. `on` is an object of listeners, `key` identifies it among its siblings; other
 * properties are attributes.
 */
export function h(tag, properties, ...children) {
  const { on, key, ...attributes } = properties ?? {};
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'width%') element.style.width = `${value}%`;
    else if (name === 'tint') element.style.background = value;
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.kept = { tint: attributes.tint, width: attributes['width%'], value: attributes.value, on, key };
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
  element.kinds ??= new Set();
  if (element.kinds.has(kind)) return;
  element.kinds.add(kind);
  element.addEventListener(kind, (event) => element.kept?.on?.[kind]?.(event));
}

/** Returns what makes an element the same one in the next version: its tag and its key. */
const kindOf = (node) => `${node.nodeName} ${node.kept?.key ?? node.id ?? ''}`;

/** Changes `old` into `next`, and keeps the focus, scroll positions and the selection. */
export function morph(old, next) {
  if (kindOf(old) !== kindOf(next)) {
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
  for (const kind of Object.keys(on ?? {})) listen(old, kind);
  old.kept = next.kept;
  morphChildren(old, next);
  // The value of a select needs its options.
  if (value !== undefined && old !== document.activeElement && old.value !== String(value)) old.value = value;
  return old;
}

/** Keeps the children that are in both versions, and puts them into the order of the next one. */
function morphChildren(old, next) {
  const spare = new Map();
  for (const child of old.childNodes) {
    const kind = kindOf(child);
    if (spare.has(kind)) spare.get(kind).push(child);
    else spare.set(kind, [child]);
  }
  const children = [...next.childNodes].map((child) => {
    const known = spare.get(kindOf(child))?.shift();
    return known === undefined ? child : morph(known, child);
  });
  for (const rest of spare.values()) for (const child of rest) child.remove();
  // A moved element loses the focus and the selection, so the others move around it.
  const fixed = Math.max(0, children.findIndex(isUsed));
  if (children.length > 0 && children[fixed].parentNode !== old) old.prepend(children[fixed]);
  for (let at = fixed - 1; at >= 0; at -= 1) {
    if (children[at].nextSibling !== children[at + 1]) children[at + 1].before(children[at]);
  }
  for (let at = fixed + 1; at < children.length; at += 1) {
    if (children[at].previousSibling !== children[at - 1]) children[at - 1].after(children[at]);
  }
}

/** Returns whether an element of the page has the focus or the start of the selection. */
const isUsed = (node) => node.isConnected && (node.contains(document.activeElement) || node.contains(document.getSelection()?.anchorNode));
