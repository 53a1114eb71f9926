// SPDX-License-Identifier: Apache-2.0
// A table that sorts, filters, exports CSV and scrolls through any number of rows: only the rows in
// sight are in the document.

import {h, debounce, download, announce} from './dom.js';
import * as format from './format.js';

const ROW = 30;            // px, as in style.css
const TALLEST = 12000000;  // px a browser surely lays out; taller tables scroll proportionally
const LETTER = 7.4, PADDING = 24;  // px: a character as wide as most, both sides of a cell
const FACETS = 24;         // a column with at most so many different texts may become a choice

const collator = new Intl.Collator('en', {numeric: true, sensitivity: 'base'});

// Alphabetic ranks of a text column, so that sorting compares integers.
function ranks(values) {
  const order = [...new Set(values)].sort(collator.compare);
  const rank = new Map(order.map((v, i) => [v, i]));
  return Float64Array.from(values, (v) => rank.get(v));
}

function csvCell(value) {
  let text = typeof value === 'number' ? (Number.isFinite(value) ? String(value) : '') : value;
  // A spreadsheet would run a text that starts like a formula.
  if (typeof value !== 'number' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return `"${text.replaceAll('"', '""')}"`;
}

/* options:
 *   columns   [{id, label, type, values, format(v), bar (a fraction drawn as a bar), width (px), hidden,
 *             title, unit (of the values; named in the export's header)}]
 *   length    rows
 *   caption   what the table shows, in words
 *   csv       file name of the export
 *   sort      {id, down}; search text; facets {columnId: value}: where to start
 *   facetColumns [id]: columns offered as choices
 *   onState({sort, search, facets})  after a change by the reader
 *   onOpen(row)  Enter or a click on a row
 *   empty     sentence for a table without rows */
export class DataTable {
  constructor(options) {
    this.o = options;
    this.columns = options.columns.map((c) => ({...c, hidden: Boolean(c.hidden), lower: null, rank: null}));
    this.sort = options.sort && this.columns.some((c) => c.id === options.sort.id) ? options.sort : null;
    this.search = options.search || '';
    this.facets = {...options.facets};
    this.rows = new Uint32Array(0);
    this.active = -1;
    this.build();
    this.refresh();
  }

  build() {
    const {o} = this;
    this.input = h('input', {
      type: 'search',
      placeholder: 'Filter rows',
      'aria-label': `Filter ${o.caption}`,
      value: this.search,
      spellcheck: 'false',
      autocomplete: 'off',
      oninput: debounce(90,
          () => {
            this.search = this.input.value;
            this.refresh();
            this.tell();
          }),
    });
    this.facetBar = h('span', {class: 'facets'}, (o.facetColumns || []).map((id) => this.facet(id)));
    this.counter = h('span', {class: 'muted counter', role: 'status'});
    this.menu = h('details', {class: 'menu'}, h('summary', {}, 'Columns'),
        h('div', {class: 'menu-body'},
            this.columns.map((c) => h('label', {}, h('input', {
              type: 'checkbox',
              checked: !c.hidden,
              onchange: (e) => {
                c.hidden = !e.target.checked;
                this.head();
                this.paint();
              },
            }),
                                 ' ', c.label))));
    this.menu.addEventListener('keydown', (e) => {
      if (e.key === 'Escape') {
        this.menu.open = false;
        this.menu.querySelector('summary').focus();
      }
    });
    const save = h('button', {type: 'button', onclick: () => this.export()}, 'Export CSV');
    this.headRow = h('tr', {});
    this.body = h('tbody', {});
    this.cols = h('colgroup', {});
    this.table = h('table', {class: 'data', role: 'grid', tabindex: '0', 'aria-label': o.caption}, this.cols,
        h('thead', {}, this.headRow), this.body);
    this.table.addEventListener('keydown', (e) => this.key(e));
    this.scroller = h('div', {class: 'scroller'}, this.table);
    this.scroller.addEventListener('scroll', () => this.later(), {passive: true});
    this.none = h('p', {class: 'muted pad', hidden: true});
    this.element = h('div', {class: 'datatable'},
        h('div', {class: 'bar'}, this.input, this.facetBar, this.counter, h('span', {class: 'grow'}),
            this.menu, save),
        this.scroller, this.none);
    this.scroller.addEventListener('scroll', () => this.hint(), {passive: true});
    new ResizeObserver(() => {
      this.layout();
      this.first = -1;  // cells are cut to their columns
      this.later();
    }).observe(this.scroller);
    this.head();
  }

  facet(id) {
    const c = this.columns.find((x) => x.id === id);
    if (!c) return null;
    const values = [...new Set(c.values)];
    if (values.length < 2 || values.length > FACETS) return null;
    values.sort(collator.compare);
    const select = h('select', {
      'aria-label': c.label,
      'data-facet': id,
      onchange: () => {
        this.facets[id] = select.value || undefined;
        this.refresh();
        this.tell();
      },
    },
        h('option', {value: ''}, `${c.label}: all`),
        values.map((v) => h('option', {value: v}, v || '(none)')));
    if (this.facets[id] !== undefined) select.value = this.facets[id];
    return select;
  }

  shown() {
    return this.columns.filter((c) => !c.hidden);
  }

  head() {
    const shown = this.shown();
    this.headRow.replaceChildren(...shown.map((c) => {
      const sorted = this.sort && this.sort.id === c.id ? this.sort : null;
      return h('th', {
        scope: 'col',
        class: c.type === 'number' ? 'num' : null,
        'data-column': c.id,
        'aria-sort': sorted ? (sorted.down ? 'descending' : 'ascending') : 'none',
      },
          h('button', {type: 'button', title: c.title || c.label, onclick: () => this.order(c)},
              h('span', {}, c.label),
              h('span', {class: 'arrow', 'aria-hidden': 'true'}, sorted ? (sorted.down ? '▼' : '▲') : '')));
    }));
    this.table.setAttribute('aria-colcount', String(shown.length));
    this.layout();
  }

  // Columns are as wide as their content; what a window has beyond that goes to the texts that are cut.
  layout() {
    const shown = this.shown(), room = this.scroller.clientWidth || 0;
    const needs = shown.map((c) => this.width(c)), all = needs.reduce((n, w) => n + w, 0);
    const lacks = shown.map((c, i) => (c.type === 'number' ? 0 : Math.max(0, this.whole(c) - needs[i])));
    const lacking = lacks.reduce((n, w) => n + w, 0), spare = Math.max(0, room - all);
    const last = shown.findIndex((c) => c.type !== 'number');
    this.widths = new Map(shown.map((c, i) => {
      const more = lacking > 0 ? Math.min(lacks[i], spare * lacks[i] / lacking) : 0;
      return [c, needs[i] + more];
    }));
    const rest = room - [...this.widths.values()].reduce((n, w) => n + w, 0);
    if (rest > 0 && last >= 0) this.widths.set(shown[last], this.widths.get(shown[last]) + rest);
    this.cols.replaceChildren(...shown.map((c) => h('col', {vars: {width: `${Math.floor(this.widths.get(c))}px`}})));
    this.table.style.setProperty('min-width', `${all}px`);
    this.hint();
  }

  // Whether columns lie beyond the right edge: a shade says so.
  hint() {
    const {scrollWidth, scrollLeft, clientWidth} = this.scroller;
    this.element?.style.setProperty('--above', `${this.scroller.offsetTop}px`);
    this.element?.classList.toggle('more-right', scrollWidth - scrollLeft - clientWidth > 4);
  }

  shownText(c, r) {
    const v = c.values[r];
    return c.format ? c.format(v, r) : c.type === 'number' ? format.number(v) : v;
  }

  // px that the longest of the first cells and the label take.
  whole(c) {
    if (!c.longest) {
      let longest = 0;
      for (let i = 0; i < Math.min(c.values.length, 200); i++) longest = Math.max(longest, String(this.shownText(c, i)).length);
      c.longest = Math.max(longest * LETTER, c.label.length * 8 + 28) + PADDING;
    }
    return c.longest;
  }

  width(c) {
    const least = c.type === 'number' ? Math.min(240, this.whole(c)) : 72;  // numbers are never cut
    return Math.max(c.width || 72, least, c.width ? 0 : Math.min(c === this.columns[0] && c.type !== 'number' ? 400 : 240, this.whole(c)));
  }

  order(c) {
    if (this.sort && this.sort.id === c.id)
      this.sort = {id: c.id, down: !this.sort.down};
    else
      this.sort = {id: c.id, down: c.type === 'number'};
    this.head();
    this.refresh();
    this.tell();
    this.headRow.querySelector(`[data-column="${CSS.escape(c.id)}"] button`)?.focus();
    announce(`Sorted by ${c.label}, ${this.sort.down ? 'descending' : 'ascending'}`);
  }

  tell() {
    if (this.o.onState) this.o.onState({sort: this.sort, search: this.search, facets: this.facets});
  }

  // Which rows, in which order.
  refresh() {
    const n = this.o.length;
    const words = this.search.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = this.columns.filter((c) => c.type !== 'number');
    if (words.length)
      for (const c of texts) c.lower ||= c.values.map((v) => v.toLowerCase());
    const facets = Object.entries(this.facets)
                       .filter(([, v]) => v !== undefined)
                       .map(([id, v]) => [this.columns.find((c) => c.id === id), v])
                       .filter(([c]) => c);
    const rows = new Uint32Array(n);
    let kept = 0;
    for (let r = 0; r < n; r++) {
      if (!facets.every(([c, v]) => c.values[r] === v)) continue;
      if (!words.every((w) => texts.some((c) => c.lower[r].includes(w)))) continue;
      rows[kept++] = r;
    }
    this.rows = rows.subarray(0, kept);
    const by = this.sort && this.columns.find((c) => c.id === this.sort.id);
    if (by) {
      const keys = by.type === 'number' ? by.values : (by.rank ||= ranks(by.values));
      const sign = this.sort.down ? -1 : 1;
      this.rows.sort((a, b) => {
        const x = keys[a], y = keys[b];
        if (x === y) return a - b;
        if (x !== x) return y !== y ? a - b : 1;  // what is missing comes last either way
        if (y !== y) return -1;
        return x < y ? -sign : sign;
      });
    }
    this.active = -1;
    this.scroller.scrollTop = 0;
    this.counter.textContent = kept === n ? `${format.count(n)} row${n === 1 ? '' : 's'}` :
                                            `${format.count(kept)} of ${format.count(n)} rows`;
    this.none.hidden = kept > 0;
    this.none.textContent =
        n === 0 ? this.o.empty || 'Nothing to show.' : 'No row matches. Change or clear the filter.';
    this.table.setAttribute('aria-rowcount', String(kept + 1));
    this.first = this.last = -1;
    this.paint();
  }

  later() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paintIfMoved();
    });
  }

  geometry() {
    const full = this.rows.length * ROW;
    const tall = Math.min(full, TALLEST);
    const view = this.scroller.clientHeight || 600;
    const scroll = this.scroller.scrollTop;
    const top = tall === full ? scroll : scroll * (full - view) / Math.max(1, tall - view);
    const first = Math.max(0, Math.floor(top / ROW) - 8);
    const last = Math.min(this.rows.length, Math.ceil((top + view) / ROW) + 8);
    // Where the first painted row stands so that the one at the top of the view is in place.
    const above = Math.max(0, Math.min(scroll - (top - first * ROW), tall - (last - first) * ROW));
    return {first, last, above, below: Math.max(0, tall - above - (last - first) * ROW)};
  }

  paintIfMoved() {
    const g = this.geometry();
    if (g.first !== this.first || g.last !== this.last || g.above !== this.above) this.paint(g);
  }

  paint(g = this.geometry()) {
    Object.assign(this, {first: g.first, last: g.last, above: g.above});
    const shown = this.shown();
    const spacer = (height) => h('tr', {'aria-hidden': 'true', class: 'spacer'},
        h('td', {colSpan: Math.max(1, shown.length), vars: {height: `${height}px`}}));
    const rows = [spacer(g.above)];
    for (let i = g.first; i < g.last; i++) rows.push(this.row(i, shown));
    rows.push(spacer(g.below));
    this.body.replaceChildren(...rows);
  }

  row(i, shown) {
    const r = this.rows[i];
    const active = i === this.active;
    const tr = h('tr', {
      id: active ? this.activeId() : null,
      'aria-rowindex': i + 2 + '',
      class: active ? 'active' : null,
      'aria-selected': active ? 'true' : null,
      onclick: () => this.activate(i, true),
    },
        shown.map((c) => {
          const v = c.values[r];
          const text = this.shownText(c, r);
          const room = Math.max(8, Math.floor(((this.widths?.get(c) || this.width(c)) - PADDING) / LETTER));
          const fits = c.type === 'number' ? text : format.short(text, room);
          const td = h('td', {
            class: (c.type === 'number' ? 'num' : '') + (c.bar ? ' barred' : ''),
            title: fits !== text || (c.type !== 'number' && text.length > 24) ? format.cut(text, 2000) : null
          },
              fits);
          if (c.bar) td.style.setProperty('--part', `${Math.max(0, Math.min(100, v * 100)) || 0}%`);
          return td;
        }));
    return tr;
  }

  activeId() {
    return (this.id ||= `row-${Math.random().toString(36).slice(2)}`);
  }

  activate(i, open) {
    if (this.rows.length === 0) return;
    this.active = Math.max(0, Math.min(this.rows.length - 1, i));
    this.paint();
    this.table.setAttribute('aria-activedescendant', this.activeId());
    if (open && this.o.onOpen) this.o.onOpen(this.rows[this.active]);
  }

  key(e) {
    if (e.target !== this.table || e.ctrlKey || e.metaKey || e.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (e.key in moves) {
      e.preventDefault();
      const to = Math.max(0, Math.min(this.rows.length - 1, this.active + moves[e.key]));
      this.reveal(to);
      this.activate(to, false);
    } else if (e.key === 'Enter' && this.active >= 0) {
      e.preventDefault();
      this.activate(this.active, true);
    }
  }

  reveal(i) {
    const full = this.rows.length * ROW, tall = Math.min(full, TALLEST), view = this.scroller.clientHeight;
    const head = this.headRow.offsetHeight;
    const scale = tall === full ? 1 : (tall - view) / (full - view);
    const top = i * ROW * scale;
    if (top < this.scroller.scrollTop)
      this.scroller.scrollTop = top;
    else if (top + ROW + head > this.scroller.scrollTop + view)
      this.scroller.scrollTop = top + ROW + head - view;
  }

  // What is shown, in its order, all columns.
  export() {
    const lines = [this.columns.map((c) => csvCell(c.unit ? `${c.label} (${c.unit})` : c.label)).join(',')];
    for (const r of this.rows) lines.push(this.columns.map((c) => csvCell(c.values[r])).join(','));
    download(this.o.csv || 'table.csv', 'text/csv;charset=utf-8', [lines.join('\r\n'), '\r\n']);
    announce(`${this.rows.length} rows exported`);
  }
}
