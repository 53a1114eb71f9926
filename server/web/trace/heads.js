// SPDX-License-Identifier: Apache-2.0
// The names of the tracks on the left, and what is done to a track there: fold, pin, hide.
//
// Of the buttons of tracks one is in the order of the tab key; arrows go from track to track and from button to
// button, so that a hundred tracks are one stop.

import {h} from '../lib/dom.js';
import {itemAt} from './layout.js';

// "HOST PLANE": the plane first, for it tells tracks apart.
function label(name) {
  const m = /^(\S+) (\/.+)$/.exec(name);
  return m ? [m[2], h('span', {class: 'muted of'}, m[1])] : name;
}

const vars = (item) => ({top: `${item.y}px`, height: `${item.height}px`});

function processHead(view, item) {
  const {pid, name} = item.process, open = !view.state.collapsed.has(pid);
  return h('div', {class: 'head process', role: 'listitem', vars: vars(item)},
      h('button', {
        type: 'button',
        'aria-expanded': String(open),
        'data-act': `process ${pid}`,
        title: name,
        onclick: () => view.toggle('collapsed', pid),
      },
          h('span', {class: 'twist', 'aria-hidden': 'true'}, open ? '▾' : '▸'), label(name)));
}

// A button without text: its picture is the style sheet's, so that the name alone is read and copied.
function act(view, item, set, what, pressed) {
  return h('button', {
    type: 'button',
    class: `act act-${set}`,
    tabindex: '-1',
    'data-act': `${set} ${item.key}`,
    'aria-label': `${what} ${item.name}`,
    'aria-pressed': pressed === undefined ? null : String(pressed),
    title: what,
    onclick: () => view.toggle(set, item.key)
  });
}

function trackHead(view, item) {
  const {folded, pinned} = view.state, fixed = item.pinned && view.fixed;
  const title = item.pinned ? `${item.name}, of ${item.process.name}` : item.name;
  const fold = folded.has(item.key);
  return h('div', {class: `head ${item.kind}${fixed ? ' fixed' : ''}`, role: 'listitem', vars: vars(item), title},
      item.all > 1 ? act(view, item, 'folded', fold ? 'Show all rows of' : 'Show one row of', fold) : '', item.name.replace(/\/-?\d{15,}$/, ''),  // an id, which the title has
      h('span', {class: 'acts'}, act(view, item, 'pinned', pinned.has(item.key) ? 'Unpin' : 'Pin', pinned.has(item.key)),
          act(view, item, 'hidden', 'Hide')));
}

// Arrows within the names: up and down from head to head, left and right from button to button.
export function headKey(view, e) {
  const way = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[e.key];
  const head = e.target.closest('.head');
  if (!way || !head || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  e.stopPropagation();
  if (way[1]) {
    const all = [...head.querySelectorAll('button')];
    all[all.indexOf(e.target) + way[1]]?.focus();
    return;
  }
  const next = way[0] > 0 ? head.nextElementSibling : head.previousElementSibling;
  if (!next) return;
  next.querySelector('button').focus({preventScroll: true});
  const box = next.getBoundingClientRect(), frame = view.heads.getBoundingClientRect();
  if (box.bottom > frame.bottom - 40) view.scroller.scrollTop += box.height + 40;
  if (box.top < frame.top + view.fixed + 40 && !next.classList.contains('fixed')) view.scroller.scrollTop -= box.height + 40;
}

const headOf = (view, item) => (item.kind === 'process' ? processHead(view, item) : trackHead(view, item));

// All that a head shows: heads of the same are alike, whatever was laid out anew since.
function sign(view, item) {
  const {collapsed, folded, pinned} = view.state, {pid, name} = item.process;
  return JSON.stringify([
    item.kind, pid, name, item.key, item.name, item.y, item.height, item.all, collapsed.has(pid), folded.has(item.key),
    pinned.has(item.key), item.pinned && view.fixed
  ]);
}

// Makes the children of PARENT those of NODES in their order; what stays is not touched, so that it keeps the focus.
function arrange(parent, nodes) {
  const stay = new Set(nodes);
  for (const child of [...parent.children])
    if (!stay.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

// Only names in sight are in the document.  While tracks are scrolled, those that stay in sight stay as they are: making
// them anew takes longer than all that is drawn.
export function drawHeads(view, top) {
  const first = itemAt(view.items, top + view.fixed),
        last = Math.min(view.items.length, itemAt(view.items, top + view.tall) + 1);
  const at = `${first} ${last} ${view.version} ${view.fixed}`;
  if (at !== view.headsAt) {
    const before = view.headNodes || new Map();
    view.headsAt = at;
    const shown = view.fixed ? [...view.items.slice(0, view.pinnedCount), ...view.items.slice(Math.max(first, view.pinnedCount), last)] :
                               view.items.slice(first, last);
    const focused = view.heads.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    view.headNodes = new Map(shown.map((item) => {
      const signed = sign(view, item);
      return [signed, before.get(signed) || headOf(view, item)];
    }));
    arrange(view.heads, [...view.headNodes.values()]);
    view.heads.querySelector('.act[tabindex="0"]')?.setAttribute('tabindex', '-1');
    view.heads.querySelector('.act')?.setAttribute('tabindex', '0');
    if (focused && !view.heads.contains(document.activeElement)) {
      const again = view.heads.querySelector(`[data-act="${CSS.escape(focused)}"]`);
      again ? again.focus({preventScroll: true}) : view.canvas.focus({preventScroll: true});
    }
  }
  if (top !== view.shifted) view.heads.style.setProperty('--shift', `${- top}px`);
  view.shifted = top;
}
