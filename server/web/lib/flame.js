// SPDX-License-Identifier: Apache-2.0
// A tree as stacked bars (an icicle): width is time, exactly.  Children that would be too thin to see
// are one bar, "N others".  Click or Enter goes into a node, Escape or Backspace back out; the arrow
// keys move.

import {h, announce} from './dom.js';

const ROW = 26;       // px per level, as in style.css
const NARROWEST = 3;  // px; children that are narrower are drawn as one
const GAP = 1;        // px between bars, taken from those that stay wider than it
const DEEPEST = 64;
const PARTS = 16;     // of a node whose children are all too narrow

// A hue per text, always the same.
export function hash(text) {
  let x = 2166136261;
  for (let i = 0; i < text.length; i++) x = Math.imul(x ^ text.charCodeAt(i), 16777619);
  return x >>> 0;
}

// The children of a node from `from` to before `to`, as one node: {others: 'from-to', …}.  Always the
// same object for the same arguments, so that it can be selected.
const rests = new WeakMap();
export function others(node, from, to) {
  if (!rests.has(node)) rests.set(node, new Map());
  const known = rests.get(node), key = `${from}-${to}`;
  if (!known.has(key)) {
    const children = node.children.slice(from, to);
    known.set(key, {
      raw: {},
      name: `${children.length} others`,
      value: children.reduce((sum, c) => sum + c.value, 0),
      parent: node,
      depth: node.depth + 1,
      children,
      others: key
    });
  }
  return known.get(key);
}

/* root: {name, value, children, parent, depth, …}; children sorted; value >= sum of the children's.
 * tone(node) → 0…15 a colour, or a fraction 'heat' 0…1 when heat is set.
 * onFocus(node): the node the chart is zoomed into; onSelect(node): the one to describe. */
export class Flame {
  constructor({root, tone, text, label, onZoom, onSelect}) {
    Object.assign(this, {root, tone, text, onZoom, onSelect});
    this.zoomed = root;
    this.selected = root;
    this.nodes = new Map();
    this.element = h('div', {class: 'flame', role: 'tree', 'aria-label': label});
    this.element.addEventListener('keydown', (e) => this.key(e));
    this.element.addEventListener('click', (e) => {
      const node = this.nodes.get(e.target.closest('[role=treeitem]'));
      if (node) this.enter(node);
    });
    this.element.addEventListener('pointerover', (e) => {
      const node = this.nodes.get(e.target.closest('[role=treeitem]'));
      if (node && this.onSelect) this.onSelect(node, false);
    });
    this.element.addEventListener('pointerleave', () => this.onSelect && this.onSelect(this.selected, false));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  enter(node) {
    this.selected = node;
    if (node.children.length || node === this.root) {
      this.zoomed = node;
      this.draw();
      if (this.onZoom) this.onZoom(node);
    } else
      this.draw();
    if (this.onSelect) this.onSelect(node, true);
    this.focus();
  }

  show(node) {
    this.zoomed = node;
    this.selected = node;
    this.draw();
  }

  focus() {
    this.element.querySelector('[tabindex="0"]')?.focus({preventScroll: true});
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    this.nodes.clear();
    const out = [];
    let deepest = 0;
    const put = (node, level, left, w) => {
      deepest = Math.max(deepest, level);
      const {title, detail} = this.text(node);
      const tone = this.tone(node);
      const el = h('div', {
        role: 'treeitem',
        class: `bar ${typeof tone === 'number' ? `tone-${tone}` : 'heat'}${
            node === this.selected ? ' selected' : ''}${level < this.zoomed.depth ? ' above' : ''}`,
        tabindex: node === this.selected ? '0' : '-1',
        'aria-level': String(level + 1),
        'aria-label': `${title}, ${detail}`,
        'aria-expanded': node.children.length ? String(node.depth <= this.zoomed.depth) : null,
        'aria-selected': String(node === this.selected),
        title: `${title}\n${detail}`,
        vars: {left: `${left}px`, width: `${w > 2 * GAP ? w - GAP : w}px`, top: `${level * ROW}px`},
      });
      if (typeof tone !== 'number') el.style.setProperty('--heat', `${Math.round(tone.heat * 100)}%`);
      if (w > 34) el.append(h('span', {}, title), w > 190 ? h('small', {}, detail) : '');
      this.nodes.set(el, node);
      out.push(el);
    };
    const path = [];
    for (let n = this.zoomed.parent; n; n = n.parent) path.unshift(n);
    path.forEach((n, i) => put(n, i, 0, width));
    const queue = [[this.zoomed, path.length, 0, width]];
    for (let i = 0; i < queue.length; i++) {
      const [node, level, left, w] = queue[i];
      put(node, level, left, w);
      if (level >= DEEPEST || !(node.value > 0) || (node.others && node !== this.zoomed)) continue;
      let x = left;
      for (const child of this.bars(node, w)) {
        const cw = child.value / node.value * w;
        queue.push([child, level + 1, x, cw]);
        x += cw;
      }
    }
    if (![...this.nodes.values()].includes(this.selected)) out[path.length].tabIndex = 0;
    const had = this.element.contains(document.activeElement);
    this.element.style.height = `${(deepest + 1) * ROW}px`;
    this.element.replaceChildren(...out);
    if (had) this.focus();
  }

  // What is drawn below a node that is `width` px wide: its children, the thin ones as one.
  bars(node, width) {
    const all = node.children, n = all.length;
    const thin = all.findIndex((c) => c.value / node.value * width < NARROWEST);
    if (thin < 0 || thin === n - 1) return all;
    if (thin > 0 || node !== this.zoomed) return [...all.slice(0, thin), others(node, thin, n)];
    const parts = Math.min(PARTS, n), at = (i) => Math.round(i * n / parts);
    return Array.from({length: parts}, (_, i) => others(node, at(i), at(i + 1)));
  }

  key(e) {
    const node = this.nodes.get(e.target);
    if (!node || e.ctrlKey || e.metaKey || e.altKey) return;
    const items = [...this.element.children];
    const level = e.target.getAttribute('aria-level');
    const same = items.filter((el) => el.getAttribute('aria-level') === level);
    const at = same.indexOf(e.target);
    const box = (el) => [parseFloat(el.style.left), parseFloat(el.style.left) + parseFloat(el.style.width)];
    const [left, right] = box(e.target);
    const next = (levels, test) => this.nodes.get(items.find(
        (el) => Number(el.getAttribute('aria-level')) === Number(level) + levels && test(...box(el))));
    const to = {
      ArrowLeft: this.nodes.get(same[at - 1]),
      ArrowRight: this.nodes.get(same[at + 1]),
      ArrowUp: next(-1, (l, r) => l <= left && left < r),
      ArrowDown: next(1, (l) => left <= l && l < right)
    };
    if (e.key in to) {
      e.preventDefault();
      if (!to[e.key]) return;
      this.selected = to[e.key];
      this.draw();
      this.focus();
      if (this.onSelect) this.onSelect(this.selected, true);
    } else if (e.key === 'Enter' || e.key === ' ') {
      e.preventDefault();
      this.enter(node);
    } else if (e.key === 'Escape' || e.key === 'Backspace') {
      e.preventDefault();
      if (this.zoomed.parent) this.enter(this.zoomed.parent);
      announce(`In ${this.zoomed.name}`);
    }
  }
}
