// SPDX-License-Identifier: Apache-2.0
// Completion for a text area: a list of names that continue the word before the caret.

import {h} from './dom.js';

const MOST = 12;
const WORD = /[A-Za-z_][\w]*$/;

/* TEXT: the area; names(): a promise of [{name, what}], all that may be meant now.  The element that is returned holds the
 * list and stands below the area.  Keys: Ctrl + Space opens it, arrows move, Tab takes, Enter too once an arrow moved, Escape closes. */
export function complete(text, names) {
  const list = h('ul', {class: 'completions', role: 'listbox', id: `${text.id}-names`, 'aria-label': 'Names', hidden: true});
  let shown = [], at = -1, moved = false, asked = 0;
  text.setAttribute('aria-autocomplete', 'list');
  text.setAttribute('aria-controls', list.id);
  const close = () => {
    asked++;
    at = -1;
    list.hidden = true;
    text.removeAttribute('aria-activedescendant');
  };
  const word = () => WORD.exec(text.value.slice(0, text.selectionStart))?.[0] || '';
  const mark = (i) => {
    at = (i + shown.length) % shown.length;
    [...list.children].forEach((li, k) => li.setAttribute('aria-selected', String(k === at)));
    list.children[at].scrollIntoView({block: 'nearest'});
    text.setAttribute('aria-activedescendant', list.children[at].id);
  };
  const take = (i) => {
    const end = text.selectionStart, begin = end - word().length;
    text.setRangeText(shown[i].name, begin, end, 'end');
    close();
    text.focus();
    text.dispatchEvent(new Event('change'));
  };
  const open = async (all) => {
    const mine = ++asked, begun = word().toLowerCase();
    if (!begun && !all) return close();
    const known = await names();
    if (mine !== asked || document.activeElement !== text) return;
    const of = (x) => x.name.toLowerCase();
    shown = known.filter((x) => of(x).startsWith(begun) && of(x) !== begun).slice(0, MOST);
    if (!shown.length || (!all && known.some((x) => of(x) === begun))) return close();  // a complete name needs no proposals
    moved = all;
    list.replaceChildren(...shown.map((x, i) => h('li', {
      role: 'option',
      id: `${list.id}-${i}`,
      onpointerdown: (e) => {
        e.preventDefault();  // the area keeps the focus
        take(i);
      }
    },
        x.name, h('small', {}, x.what))));
    list.hidden = false;
    mark(0);
  };
  text.addEventListener('input', () => open(false));
  text.addEventListener('blur', close);
  text.addEventListener('keydown', (e) => {
    if (e.key === ' ' && e.ctrlKey) {
      e.preventDefault();
      open(true);
    } else if (list.hidden || e.ctrlKey || e.metaKey || e.altKey)
      return;
    else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      mark(at + (e.key === 'ArrowDown' ? 1 : -1));
      moved = true;
    } else if (e.key === 'Tab' || (e.key === 'Enter' && moved)) {
      e.preventDefault();
      take(at);
    } else if (e.key === 'Escape')
      close();
  });
  return list;
}
