// Actions of an operator: the page shows a preview of the losses, and the operator types the name.

import { h } from './dom.js';
import { count, plural } from './format.js';
import { names, toast, clientOf } from './parts.js';

/** Shows the losses of an action, and performs it after the operator has typed the name. */
export async function act(link, action, title, typed, refresh) {
  let preview;
  try {
    preview = await link.ask({ act: { action, preview: true } });
  } catch (error) {
    toast(error.message);
    return;
  }
  const wrong = h('p', { class: 'wrong', role: 'alert' });
  const field = h('input', { id: 'typed', autocomplete: 'off', spellcheck: 'false', on: { input: () => check() } });
  const button = h('button', { class: 'danger', type: 'submit', disabled: true }, title);
  const check = () => {
    button.disabled = field.value !== typed;
  };
  const submit = async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    try {
      const { count: lost } = await link.ask({ act: { action } });
      dialog.close();
      toast(`done: ${plural(lost, 'request')} lost`);
      refresh();
    } catch (error) {
      wrong.textContent = error.message;
    }
  };
  const dialog = h('dialog', { 'aria-labelledby': 'act-title', on: { close: () => dialog.remove() } },
    h('form', { on: { submit } },
      h('h2', { id: 'act-title' }, title),
      h('p', { class: 'note' }, preview.count === 0 ? 'No client loses a lock or a request.' : `${plural(preview.count, 'request')} ${preview.count === 1 ? 'is' : 'are'} lost, and ${preview.count === 1 ? 'its client is' : 'their clients are'} notified:`),
      preview.losses.length > 0 ? h('ul', {}, preview.losses.map((entry) => h('li', {}, clientOf(entry), h('div', { class: 'note' }, entry.token === undefined ? 'waits for ' : 'holds ', names(entry))))) : undefined,
      preview.count > preview.losses.length ? h('p', { class: 'note' }, `and ${count(preview.count - preview.losses.length)} more`) : undefined,
      h('label', { for: 'typed' }, 'Type ', h('span', { class: 'name' }, typed), ' to continue'),
      field, wrong,
      h('div', { class: 'buttons' }, h('button', { type: 'button', on: { click: () => dialog.close() } }, 'Cancel'), button)));
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
}
