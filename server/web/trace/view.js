// SPDX-License-Identifier: Apache-2.0
// The trace on canvas: drawing, zooming, selecting.  Knows nothing of addresses and servers.
//
// events (CustomEvent on the element): 'view' the window changed, 'select' an event was selected (detail: it, or null;
// all that were picked together are in picked), 'range' a stretch of time was marked (detail: [t0, t1] or null; on which
// tracks is in rangeTracks, null: on all), 'tool' another tool was chosen, or tracks were arranged.

import {h, announce} from '../lib/dom.js';
import * as format from '../lib/format.js';
import {hash} from '../lib/flame.js';
import {above} from './model.js';
import {palette, paintRow, paintCounter} from './paint.js';
import {layout, index, itemAt, ROW} from './layout.js';
import {drawRuler, drawMinimap, density} from './ruler.js';
import {drawOverlay, boxOf} from './overlay.js';
import {drawHeads, headKey} from './heads.js';
import {linksOf} from './flows.js';
import {TOOLS, press} from './tools.js';

// px of the names on the left: as the style sheet has it for this window.
const headWidth = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--heads')) || 220;
const TEXT_FROM = 22;     // px: narrower boxes get no text
const MOST_LABELS = 1200;
const DIM = 16;          // tone of what a search does not match
const CLOSEST = 1e-4;    // µs in the window at the deepest zoom
const KEPT_TIMES = 240;  // draw times kept for the statistics

export class TraceView {
  constructor() {
    this.base = this.detail = null;
    this.state = {collapsed: new Set(), folded: new Set(), pinned: new Set(), hidden: new Set()};  // as layout has them
    this.items = [];
    this.tool = 'move';
    this.flowsShown = false;
    this.search = null;  // predicate over names
    this.selected = null;
    this.picked = [];  // the selected event, and those that were chosen beside it
    this.range = this.rangeTracks = null;
    this.bookmarks = [];  // [{t0, t1, label}]: windows to which the reader returns
    this.version = 0;  // of items
    this.t0 = 0;
    this.t1 = 1;
    this.keys = new Set();
    this.times = new Float32Array(KEPT_TIMES);
    this.drawn = 0;
    this.build();
  }

  build() {
    this.minimap = h('canvas', {class: 'minimap', 'aria-hidden': 'true'});
    this.ruler = h('canvas', {class: 'ruler', 'aria-hidden': 'true'});
    this.heads = h('div', {class: 'trace-heads', role: 'list', 'aria-label': 'Tracks'});
    this.canvas = h('canvas', {
      class: 'trace-canvas',
      tabindex: '0',
      role: 'application',
      'aria-roledescription': 'trace',
      'aria-label':
          'Trace. W and S zoom, A and D move, arrow keys go from event to event, Enter selects, question mark shows all keys.',
    });
    this.overlay = h('canvas', {class: 'trace-overlay', 'aria-hidden': 'true'});
    this.now = h('span', {class: 'trace-now', hidden: true, 'aria-hidden': 'true'});
    this.tip = h('div', {class: 'trace-tip', hidden: true});
    this.window = h('div', {class: 'trace-window'}, this.heads, this.canvas, this.overlay, this.tip);
    this.sizer = h('div', {class: 'trace-sizer'}, this.window);
    this.scroller = h('div', {class: 'trace-scroll'}, this.sizer);
    this.element =
        h('div', {class: 'trace'}, h('div', {class: 'trace-top'}, this.minimap, this.ruler, this.now), this.scroller);
    this.scroller.addEventListener('scroll', () => {
      this.invalidate();
      this.emit('view');
    }, {passive: true});
    this.canvas.addEventListener('wheel', (e) => this.wheel(e), {passive: false});
    this.canvas.addEventListener('pointerdown', (e) => press(this, e));
    this.canvas.addEventListener('pointermove', (e) => this.hover(e));
    this.canvas.addEventListener('pointerleave', () => {
      this.tip.hidden = this.now.hidden = true;
      this.pointerX = this.pointerY = -1;
      this.overlaid();
    });
    this.heads.addEventListener('keydown', (e) => headKey(this, e));
    this.canvas.addEventListener('keydown', (e) => this.key(e));
    this.canvas.addEventListener('keyup', (e) => this.keys.delete(e.key.toLowerCase()));
    this.canvas.addEventListener('blur', () => this.keys.clear());
    this.minimap.addEventListener('pointerdown', (e) => this.minimapDown(e));
    this.resizer = new ResizeObserver(() => this.resize());
    this.resizer.observe(this.scroller);
    this.retheme = () => {
      this.colors = null;
      this.resize();
    };
    addEventListener('themechange', this.retheme);
  }

  close() {
    removeEventListener('themechange', this.retheme);
    this.resizer.disconnect();
    cancelAnimationFrame(this.frame);
    this.closed = true;
  }

  emit(name, detail) {
    this.element.dispatchEvent(new CustomEvent(name, {detail}));
  }

  // --- data ---

  setBase(model) {
    this.base = this.attach(model, model.start, model.end);
    this.detail = null;
    const span = model.end - model.start;
    this.full = [model.start - span * 0.01, model.end + span * 0.01];
    [this.t0, this.t1] = this.full;
    this.density = null;
    this.relayout();
  }

  // A closer view of [start, end]; drawn wherever it covers the whole window.
  setDetail(model, start, end) {
    this.detail = model ? this.attach(model, start, end) : null;
    this.relayout();
  }

  attach(model, start, end) {
    const m = {model, start, end, ...index(model)};
    this.tone(m);
    return m;
  }

  tone(m) {
    const {names} = m.model;
    m.matches = this.search ? Uint8Array.from(names, (n) => (this.search(n) ? 1 : 0)) : null;
    m.tones = Uint8Array.from(names, (n, i) => (m.matches && !m.matches[i] ? DIM : hash(n) & 15));
  }

  setSearch(predicate) {
    this.search = predicate;
    for (const m of [this.base, this.detail])
      if (m) this.tone(m);
    this.invalidate();
  }

  current() {
    const d = this.detail;
    return d && d.start <= Math.max(this.t0, this.base.model.start) &&
            d.end >= Math.min(this.t1, this.base.model.end) ?
        d :
        this.base;
  }

  // What is at the pointer (else at the top) stays there when tracks above it become taller.
  relayout() {
    const at = this.pointerY >= 0 ? this.pointerY : this.fixed, before = this.items[itemAt(this.items, this.contentY(at))];
    Object.assign(this, layout([this.base && this.base.model, this.detail && this.detail.model], this.state));
    this.byKey = new Map(this.items.map((i) => [i.key, i]));
    this.sizer.style.height = `${Math.max(this.height, 1)}px`;
    this.version++;
    if (before) {
      const same = before.key ? this.byKey.get(before.key) :
                                this.items.find((i) => i.kind === 'process' && i.process.pid === before.process.pid);
      const by = same && !same.pinned && !before.pinned ? same.y - before.y : 0;
      if (by) this.scroller.scrollTop += by;
    }
    this.invalidate();
  }

  // Height of the pinned tracks, which do not scroll; 0 when they would leave too little for the others.
  get fixed() {
    return this.pinnedHeight <= this.tall * 0.6 ? this.pinnedHeight : 0;
  }

  // Where an item stands on the canvas, and what stands at a height of it.
  yOf(item) {
    return item.pinned && this.fixed ? item.y : item.y - this.scroller.scrollTop;
  }
  contentY(y) {
    return y < this.fixed ? y : y + this.scroller.scrollTop;
  }

  // Takes a process or a track into one of the sets of the state, or out of it.
  toggle(set, key) {
    const of = this.state[set];
    if (!of.delete(key)) of.add(key);
    this.relayout();
    this.emit('tool');
  }

  showHidden() {
    this.state.hidden.clear();
    this.relayout();
    this.emit('tool');
  }

  setTool(tool) {
    this.tool = tool;
    this.emit('tool');
  }

  showFlows(shown) {
    this.flowsShown = shown;
    this.invalidate();
    this.emit('tool');
  }

  // --- window ---

  setWindow(t0, t1, quiet) {
    const [lo, hi] = this.full || [0, 1];
    let span = Math.min(Math.max(t1 - t0, CLOSEST), hi - lo);
    if (!Number.isFinite(span) || !Number.isFinite(t0)) return;
    const middle = (t0 + t1) / 2;
    t0 = middle - span / 2;
    if (t0 < lo) t0 = lo;
    if (t0 + span > hi) t0 = hi - span;
    if (t0 === this.t0 && t0 + span === this.t1) return;
    this.t0 = t0;
    this.t1 = t0 + span;
    this.invalidate();
    if (!quiet) this.emit('view');
  }

  zoom(factor, at = (this.t0 + this.t1) / 2) {
    const span = Math.max(CLOSEST, (this.t1 - this.t0) * factor);
    const share = (at - this.t0) / (this.t1 - this.t0);
    this.setWindow(at - share * span, at + (1 - share) * span);
  }

  pan(share) {
    const by = (this.t1 - this.t0) * share;
    this.setWindow(this.t0 + by, this.t1 + by);
  }

  fit() {
    this.setWindow(...this.full);
  }

  timeAt(x) {
    return this.t0 + x / this.width * (this.t1 - this.t0);
  }
  xAt(t) {
    return (t - this.t0) / (this.t1 - this.t0) * this.width;
  }

  resize() {
    if (this.closed) return;
    this.width = Math.max(50, this.scroller.clientWidth - (this.head = headWidth()));
    this.tall = Math.max(50, this.scroller.clientHeight);
    this.ratio = Math.min(3, window.devicePixelRatio || 1);
    const px = (v) => Math.max(1, Math.round(v * this.ratio));
    for (const c of [this.canvas, this.overlay]) {
      c.width = px(this.width);
      c.height = px(this.tall);
      c.style.width = `${this.width}px`;
      c.style.height = `${this.tall}px`;
    }
    this.window.style.height = `${this.tall}px`;
    for (const [c, tall] of [[this.minimap, 44], [this.ruler, 24]]) {
      c.width = px(this.width);
      c.height = px(tall);
      c.style.width = `${this.width}px`;
      c.style.height = `${tall}px`;
    }
    const context = this.canvas.getContext('2d', {alpha: false});
    this.image = context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.line = new Uint32Array(this.canvas.width);
    this.density = null;
    this.headsAt = null;
    this.invalidate();
  }

  // --- drawing ---

  invalidate() {
    if (this.frame || this.closed) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      this.step(now);
      if (this.base && this.image) this.draw();
    });
  }

  // Keys held down move the window evenly, whatever the frame rate.
  step(now) {
    const dt = Math.min(50, now - (this.stepped || now)) / 1000;
    this.stepped = this.keys.size ? now : 0;
    if (!this.keys.size) return;
    const on = (k) => (this.keys.has(k) ? 1 : 0);
    const fast = on('shift') ? 3 : 1;
    const in_ = on('w') - on('s'), right = on('d') - on('a');
    if (in_) this.zoom(Math.exp(-in_ * dt * 2.4 * fast), this.pointerTime());
    if (right) this.pan(right * dt * 0.9 * fast);
    this.invalidate();
  }

  pointerTime() {
    return this.pointerX >= 0 && this.pointerX <= this.width ? this.timeAt(this.pointerX) :
                                                               (this.t0 + this.t1) / 2;
  }

  draw() {
    const began = performance.now();
    this.colors ||= palette(getComputedStyle(this.element));
    const {colors, pixels, line, ratio} = this;
    const w = this.canvas.width, tall = this.canvas.height;
    const px = w / (this.t1 - this.t0);
    // Columns stand at fixed times as long as the zoom stays, so that nothing flickers while moving.
    const t0 = Math.floor(this.t0 * px) / px;
    const m = this.current(), top = this.scroller.scrollTop;
    const rowTall = Math.max(2, Math.round((ROW - 2) * ratio));
    const labels = [];
    pixels.fill(colors.ground);
    this.shown = 0;
    const fixed = this.fixed, show = {m, t0, px, rowTall, labels, texts: []};
    for (let k = itemAt(this.items, top + fixed); k < this.items.length; k++) {
      const y = Math.round((this.items[k].y - top) * ratio);
      if (y >= tall) break;
      this.drawItem(this.items[k], y, show);
    }
    if (fixed) {
      const edge = Math.round(fixed * ratio);
      this.band(0, edge, colors.ground);
      show.texts = show.texts.filter((t) => t[3] >= edge);
      for (const item of this.items.slice(0, this.pinnedCount)) this.drawItem(item, Math.round(item.y * ratio), show);
      this.band(edge - 2, 2, colors.band);
    }
    const context = this.canvas.getContext('2d', {alpha: false});
    context.putImageData(this.image, 0, 0);
    this.drawTexts(context, show.texts, m, rowTall);
    drawHeads(this, top);
    drawOverlay(this);
    drawRuler(this);
    this.density ||=
        density(this.base, this.minimap.width, this.colors.css['tone-0'], this.minimap.height, this.full);
    drawMinimap(this);
    this.emit('drawn');
    this.times[this.drawn++ % KEPT_TIMES] = performance.now() - began;
  }

  // One process, counter or thread at Y (device px); its texts are appended for later.
  drawItem(item, y, {m, t0, px, rowTall, labels, texts}) {
    const {colors, pixels, line, ratio} = this, w = this.canvas.width, tall = this.canvas.height;
    if (item.kind === 'process') {
      this.band(y, Math.round(item.height * ratio), colors.band);
      return;
    }
    if (item.kind === 'counter') {
      this.paintCounter(m.counters.get(item.key), y, t0, px, item);
      return;
    }
    const track = m.tracks.get(item.key), rows = track ? Math.min(track.rows, item.rows) : 0;
    for (let d = 0; d < rows; d++) {
      const from = y + Math.round((d * ROW + 3) * ratio);
      if (from + rowTall <= 0) continue;
      if (from >= tall) break;
      line.fill(colors.ground);
      labels.length = 0;
      const set = paintRow(line, track, d, t0, px, m.tones, colors, labels, TEXT_FROM * ratio);
      if (!set) continue;
      this.shown += set;
      for (let q = Math.max(0, from); q < Math.min(tall, from + rowTall); q++) pixels.set(line, q * w);
      for (let q = 0; q < labels.length && texts.length < MOST_LABELS; q += 3)
        texts.push([track.name[labels[q]], labels[q + 1], labels[q + 2], from, m.tones[track.name[labels[q]]]]);
    }
    this.band(y + Math.round((item.height - 1) * ratio), 1, colors.line);
  }

  // Redraws what lies over the tracks alone.
  overlaid() {
    if (this.frame || this.overlaying || this.closed) return;
    this.overlaying = requestAnimationFrame(() => {
      this.overlaying = 0;
      if (this.base && this.image && this.colors) drawOverlay(this);
    });
  }

  band(y, height, color) {
    const w = this.canvas.width, from = Math.max(0, y), to = Math.min(this.canvas.height, y + height);
    if (to > from) this.pixels.fill(color, from * w, to * w);
  }

  paintCounter(counter, y, t0, px, item) {
    if (!counter) return;
    const w = this.canvas.width, tall = Math.round((item.height - 6) * this.ratio);
    this.heights ||= new Int32Array(w);
    if (this.heights.length !== w) this.heights = new Int32Array(w);
    paintCounter(this.heights, counter, t0, px, counter.top, tall);
    for (let row = 0; row < tall; row++) {
      const at = y + 3 + row;
      if (at < 0 || at >= this.canvas.height) continue;
      const need = tall - row;
      for (let x = 0; x < w; x++)
        if (this.heights[x] >= need) this.pixels[at * w + x] = this.colors.counter;
    }
    this.shown += w;
  }

  drawTexts(context, texts, m, rowTall) {
    const {names} = m.model, pad = 4 * this.ratio;
    context.font = `${Math.round(11 * this.ratio)}px system-ui, sans-serif`;
    context.textBaseline = 'middle';
    context.fillStyle = this.colors.text;
    m.widths ||= new Float32Array(names.length);  // at ratio 1, lazily, as the texts
    m.short ||= [];
    for (const [name, x0, x1, y, tone] of texts) {
      const room = x1 - x0 - 2 * pad;
      let text = m.short[name] ||= format.short(names[name], 240);
      let wide = m.widths[name];
      if (!wide) wide = m.widths[name] = context.measureText(text).width / this.ratio + 0.01;
      wide *= this.ratio;
      if (wide > room) {
        const fits = Math.floor(text.length * room / wide) - 1;
        if (fits < 1) continue;
        text = format.short(text, fits);
      }
      context.globalAlpha = tone === DIM ? 0.55 : 1;
      context.fillText(text, x0 + pad, y + rowTall / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }

  // --- finding events ---

  eventOf(m, key, row, i) {
    const t = m.tracks.get(key), item = this.byKey.get(key);
    return {
      model: m.model,
      key,
      row,
      i,
      pid: t.pid,
      tid: t.tid,
      ts: t.ts[i],
      dur: t.end[i] - t.ts[i],
      name: m.model.names[t.name[i]],
      uid: t.uid[i],
      flow: t.flow[i],
      process: item ? item.process.name : '',
      thread: item && item.thread ? item.thread.name : '',
    };
  }

  hit(x, y) {
    const at = this.contentY(y), item = this.items[itemAt(this.items, at)];
    if (!item || item.kind !== 'thread') return null;
    const m = this.current(), track = m.tracks.get(item.key), row = Math.floor((at - item.y - 3) / ROW);
    if (!track || row < 0 || row >= Math.min(track.rows, item.rows)) return null;
    const slack = 2 * (this.t1 - this.t0) / this.width, t = this.timeAt(x);
    const low = track.rowStart[row], high = track.rowStart[row + 1];
    let best = -1, near = Infinity;
    for (let i = above(track.end, low, high, t - slack); i < high && track.ts[i] <= t + slack; i++) {
      const far = t < track.ts[i] ? track.ts[i] - t : t > track.end[i] ? t - track.end[i] : 0;
      if (far < near) [best, near] = [i, far];
      if (far === 0 || i - low > 1e7) break;
    }
    return best < 0 ? null : this.eventOf(m, item.key, row, best);
  }

  // What a counter counted up to the time at X: {name, value}, or null.
  counted(x, y) {
    const item = this.items[itemAt(this.items, this.contentY(y))];
    const c = item?.kind === 'counter' ? this.current().counters.get(item.key) : null;
    const i = c ? above(c.ts, 0, c.ts.length, this.timeAt(x)) - 1 : -1;
    return i < 0 ? null : {name: c.name, value: c.value[i]};
  }

  // The event that a link names, by its track, start and (if several start together) duration.
  find(pid, tid, ts, dur) {
    const key = `${pid}/${tid}`;
    for (const m of [this.detail, this.base]) {
      const t = m && m.tracks.get(key);
      if (!t) continue;
      let found = null;
      for (let d = 0; d < t.rows; d++) {
        for (let i = above(t.ts, t.rowStart[d], t.rowStart[d + 1], ts - 2e-3);
             i < t.rowStart[d + 1] && t.ts[i] <= ts + 2e-3; i++) {
          const off = Math.abs(t.end[i] - t.ts[i] - dur);
          if (!found || off < found.off) found = {off, d, i};
        }
      }
      if (found) return this.eventOf(m, key, found.d, found.i);
    }
    return null;
  }

  // The event of the same name before E (by -1) or behind it (by 1) on its track; null: there is none among those that are
  // loaded.
  sameName(e, by) {
    const m = this.current(), t = m.tracks.get(e.key), name = t ? m.model.names.indexOf(e.name) : -1;
    let best = null;
    for (let d = 0; name >= 0 && d < t.rows; d++) {
      const first = t.rowStart[d], behind = t.rowStart[d + 1];
      let i = by > 0 ? above(t.ts, first, behind, e.ts) : above(t.ts, first, behind, e.ts - 1e-9) - 1;
      while (i >= first && i < behind && (t.name[i] !== name || t.ts[i] === e.ts)) i += by;
      if (i >= first && i < behind && (!best || (t.ts[i] - best.ts) * by < 0)) best = {d, i, ts: t.ts[i]};
    }
    return best && this.eventOf(m, e.key, best.d, best.i);
  }

  // Selects the next event of the same name; announces the name if there is none.
  goToSameName(by) {
    const next = this.selected && this.sameName(this.selected, by);
    if (next)
      this.select(next, true);
    else if (this.selected)
      announce(`No ${by > 0 ? 'later' : 'earlier'} ${this.selected.name} on this track`);
  }

  // Adds a bookmark of the present window.
  bookmark(label) {
    this.bookmarks = [...this.bookmarks, {t0: this.t0, t1: this.t1, label}];
    this.invalidate();
    this.emit('tool');
  }

  forget(bookmark) {
    this.bookmarks = this.bookmarks.filter((x) => x !== bookmark);
    this.invalidate();
    this.emit('tool');
  }

  // Events of M that the search matches, at most MOST, by start: [{m, key, row, i, ts}].
  matching(m, most) {
    const out = [];
    if (!m || !m.matches) return out;
    for (const [key, t] of m.tracks) {
      for (let d = 0; d < t.rows; d++) {
        for (let i = t.rowStart[d]; i < t.rowStart[d + 1] && out.length < most; i++)
          if (m.matches[t.name[i]]) out.push({m, key, row: d, i, ts: t.ts[i]});
      }
    }
    return out.sort((a, b) => a.ts - b.ts);
  }

  // Time and count per name inside [t0, t1]: {name, total, count, self names}
  summary(t0, t1) {
    const m = this.current(), total = new Float64Array(m.model.names.length),
          count = new Uint32Array(m.model.names.length);
    for (const item of this.items) {
      const t = item.kind === 'thread' && m.tracks.get(item.key);
      for (let d = 0; t && d < t.rows; d++) {
        for (let i = above(t.end, t.rowStart[d], t.rowStart[d + 1], t0);
             i < t.rowStart[d + 1] && t.ts[i] < t1; i++) {
          total[t.name[i]] += Math.min(t.end[i], t1) - Math.max(t.ts[i], t0);
          count[t.name[i]]++;
        }
      }
    }
    const used = [];
    for (let i = 0; i < count.length; i++)
      if (count[i]) used.push(i);
    return {
      names: used.map((i) => m.model.names[i]),
      total: Float64Array.from(used, (i) => total[i]),
      count: Float64Array.from(used, (i) => count[i])
    };
  }

  select(e, reveal) {
    this.choose(e ? [e] : [], e);
    if (e && reveal) this.reveal(e);
    if (e) announce(`${e.name || '(no name)'}, ${format.us(e.dur)}, at ${format.us(e.ts)}, on ${e.thread}`);
  }

  // PICKED: events of which E is the selected one.
  choose(picked, e) {
    const m = this.base && this.current();
    this.picked = picked;
    this.selected = e;
    this.links = e ? linksOf(m, e, (key, row, i) => this.eventOf(m, key, row, i)) : [];
    this.invalidate();
    this.emit('select', e);
  }

  // One event more beside the selected ones, or one of them less.
  pick(e) {
    if (!e) return;
    const others = this.picked.filter((x) => x.key !== e.key || x.ts !== e.ts || x.row !== e.row || x.dur !== e.dur);
    const more = others.length === this.picked.length;
    this.choose(more ? [...others, e] : others, more ? e : others.at(-1) || null);
    const n = this.picked.length;
    announce(`${format.count(n)} event${n === 1 ? '' : 's'} selected`);
  }

  reveal(e) {
    const {collapsed, folded, hidden} = this.state;
    const opened = [collapsed.delete(e.pid), hidden.delete(e.key), e.row > 0 && folded.delete(e.key)];
    if (opened.some(Boolean)) {
      this.relayout();
      this.emit('tool');
    }
    const item = this.byKey.get(e.key);
    if (item && !(item.pinned && this.fixed)) {
      const y = item.y + e.row * ROW, top = this.scroller.scrollTop;
      if (y < top + this.fixed + 10 || y + ROW > top + this.tall - 10) this.scroller.scrollTop = y - this.tall / 2;
    }
    const span = this.t1 - this.t0;
    if (e.ts + e.dur < this.t0 || e.ts > this.t1)
      this.setWindow(e.ts + e.dur / 2 - span / 2, e.ts + e.dur / 2 + span / 2);
  }

  focusOn(e) {
    const span = Math.max(e.dur * 2.4, CLOSEST * 10, 1e-3);
    this.setWindow(e.ts + e.dur / 2 - span / 2, e.ts + e.dur / 2 + span / 2);
  }

  // --- input ---

  wheel(e) {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      this.pan((e.deltaX || e.deltaY) * unit / this.width);
      return;
    }
    const speed = e.ctrlKey ? 0.01 : 0.0022;  // pinching arrives as ctrl + wheel with small steps
    this.zoom(Math.exp(Math.max(-400, Math.min(400, e.deltaY * unit)) * speed), this.timeAt(e.offsetX));
  }

  setRange(range, tracks = null) {
    if (!range && !this.range) return;
    this.range = range;
    this.rangeTracks = range ? tracks : null;
    this.invalidate();
    this.emit('range', range);
  }

  hover(e) {
    this.pointerX = e.offsetX;
    this.pointerY = e.offsetY;
    this.showTime();
    if (e.buttons || !this.base) {
      this.tip.hidden = true;
      return;
    }
    const found = this.hit(e.offsetX, e.offsetY), told = found || this.counted(e.offsetX, e.offsetY);
    this.canvas.style.cursor = found ? 'pointer' : this.tool === 'move' ? 'grab' : 'crosshair';
    this.tip.hidden = !told;
    if (!told) return;
    this.tip.replaceChildren(h('strong', {}, format.short(told.name, 300) || '(no name)'),
        h('span', {}, found ? format.us(found.dur) : format.number(told.value)));
    const left = e.offsetX > this.width * 0.6;
    this.tip.style.left = left ? '' : `${this.head + e.offsetX + 14}px`;
    this.tip.style.right = left ? `${this.width - e.offsetX + 14}px` : '';
    this.tip.style.top = `${Math.min(e.offsetY + 18, this.tall - 60)}px`;
  }

  // The time at the pointer, as exact as a pixel is.
  showTime() {
    if (!this.base) return;
    const x = this.pointerX, unit = (this.t1 - this.t0) / this.width;
    this.now.hidden = x < 0 || x > this.width;
    this.now.textContent = format.axisUs(this.timeAt(x), unit, Math.max(Math.abs(this.t0), Math.abs(this.t1)));
    this.now.style.left = x < this.width - 120 ? `${this.head + x + 4}px` : '';
    this.now.style.right = x < this.width - 120 ? '' : `${Math.max(0, this.width - x) + 4}px`;
    this.overlaid();
  }

  minimapDown(e) {
    if (!this.base) return;
    this.minimap.setPointerCapture(e.pointerId);
    const [lo, hi] = this.full;
    const center = (ev) => {
      const span = this.t1 - this.t0, t = lo + ev.offsetX / this.width * (hi - lo);
      this.setWindow(t - span / 2, t + span / 2);
    };
    const up = () => {
      this.minimap.removeEventListener('pointermove', center);
      this.minimap.removeEventListener('pointerup', up);
    };
    this.minimap.addEventListener('pointermove', center);
    this.minimap.addEventListener('pointerup', up);
    center(e);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || !this.base) return;
    const k = e.key.toLowerCase();
    if ('wasd'.includes(k) && k.length === 1) {
      // One step at once, so that a tap is a tap; held down, step() goes on.
      if (!this.keys.has(k)) {
        if (k === 'w' || k === 's')
          this.zoom(k === 'w' ? 0.8 : 1.25, this.pointerTime());
        else
          this.pan(k === 'd' ? 0.1 : -0.1);
      }
      this.keys.add(k);
      this.invalidate();
    } else if (k === 'shift')
      this.keys.add('shift');
    else if (k.startsWith('arrow'))
      this.arrow(k.slice(5));
    else if (k === 'enter') {
      if (!this.selected) this.selectMiddle();
    } else if (k === 'escape') {
      this.setRange(null);
      this.select(null);
    } else if (k === 'f') {
      if (this.selected) this.focusOn(this.selected);
    } else if (k === '0' || k === 'home')
      this.fit();
    else if (k === 'pagedown' || k === 'pageup')
      this.scroller.scrollTop += (k === 'pagedown' ? 0.8 : -0.8) * this.tall;
    else if (TOOLS[k - 1])
      this.setTool(TOOLS[k - 1][0]);
    else if (k === 'v')
      this.showFlows(!this.flowsShown);
    else if ('cph'.includes(k)) {
      const track = this.selected ? this.selected.key : this.trackAtPointer();
      if (track) this.toggle({c: 'folded', p: 'pinned', h: 'hidden'}[k], track);
    } else if (e.key === '[' || e.key === ']') {
      this.goToSameName(e.key === ']' ? 1 : -1);
    } else if (k === 'm') {
      if (this.selected) this.setRange([this.selected.ts, this.selected.ts + this.selected.dur]);
    } else
      return;
    e.preventDefault();
  }

  trackAtPointer() {
    const item = this.pointerY >= 0 ? this.items[itemAt(this.items, this.contentY(this.pointerY))] : null;
    return item && item.key;
  }

  selectMiddle() {
    const t = (this.t0 + this.t1) / 2, top = this.scroller.scrollTop, m = this.current();
    for (let k = itemAt(this.items, top); k < this.items.length && this.items[k].y < top + this.tall; k++) {
      const track = this.items[k].kind === 'thread' && m.tracks.get(this.items[k].key);
      if (!track || !track.rows) continue;
      const i = Math.min(above(track.end, 0, track.rowStart[1], t), track.rowStart[1] - 1);
      if (i >= 0 && track.ts[i] < this.t1 && track.end[i] > this.t0)
        return this.select(this.eventOf(m, this.items[k].key, 0, i), true);
    }
    return announce('No event in sight.');
  }

  // Without a selection the arrows move the window, with one they go to its neighbours.
  arrow(way) {
    const e = this.selected;
    if (!e) {
      if (way === 'left' || way === 'right')
        this.pan(way === 'left' ? -0.1 : 0.1);
      else
        this.scroller.scrollTop += way === 'up' ? -60 : 60;
      return;
    }
    const m = this.current(), t = m.tracks.get(e.key);
    if (!t) return;
    const at = (track, d, time) => Math.max(track.rowStart[d],
        Math.min(
            track.rowStart[d + 1] - 1, above(track.end, track.rowStart[d], track.rowStart[d + 1], time)));
    if (way === 'left' || way === 'right') {
      const d = Math.min(e.row, t.rows - 1);
      let i = above(t.ts, t.rowStart[d], t.rowStart[d + 1], e.ts) - 1 + (way === 'left' ? -1 : 1);
      i = Math.max(t.rowStart[d], Math.min(t.rowStart[d + 1] - 1, i));
      this.select(this.eventOf(m, e.key, d, i), true);
      return;
    }
    const down = way === 'down';
    const shown = (key) => Math.min(m.tracks.get(key).rows, this.byKey.get(key)?.rows || 0);
    if (down ? e.row + 1 < shown(e.key) : e.row > 0) {
      const d = e.row + (down ? 1 : -1);
      this.select(this.eventOf(m, e.key, d, at(t, d, e.ts)), true);
      return;
    }
    const rows = this.items.filter((x) => x.kind === 'thread' && m.tracks.get(x.key)?.rows);
    const next = rows[rows.findIndex((x) => x.key === e.key) + (down ? 1 : -1)];
    if (!next) return;
    const other = m.tracks.get(next.key), d = down ? 0 : shown(next.key) - 1;
    this.select(this.eventOf(m, next.key, d, at(other, d, e.ts)), true);
  }

  // {p50, p95, n} of the last draws, ms.
  drawTimes() {
    const n = Math.min(this.drawn, KEPT_TIMES), sorted = this.times.slice(0, n).sort();
    return {
      n: this.drawn,
      p50: sorted[Math.floor(n * 0.5)] || 0,
      p95: sorted[Math.min(n - 1, Math.floor(n * 0.95))] || 0
    };
  }
}
