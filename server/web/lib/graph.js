// SPDX-License-Identifier: Apache-2.0
// A graph on a canvas: moves, zooms, and lets the mouse or the keys take a node.  What is painted is what is
// in sight, with texts only where they can be read, so that thousands of nodes move at once.

import {h, announce} from './dom.js';
import {short} from './format.js';

const LEAST = 0.001, MOST = 4;
const READABLE = 0.38;  // scale from which on texts are painted
const STEP = 1.25, SMALL = 0.7, COMFORTABLE = 0.8;  // scales of a first look: texts are of 12 px

export class Graph {
  /* drawing: of lib/drawing.js; label: in words; onOpen(box): Enter or a click on a node or cluster;
   * onSelect(box or null) */
  constructor({drawing, label, onOpen, onSelect}) {
    this.d = drawing;
    this.o = {onOpen, onSelect};
    this.scale = 1;
    this.left = this.top = 0;  // of the drawing, at the canvas' corner
    this.selected = null;
    this.width = this.height = 0;
    this.byOp = new Map();
    for (const box of [...drawing.clusters, ...drawing.nodes]) if (box.op) this.byOp.set(box.op, box);
    this.edgesOf = new Map();
    for (const e of drawing.edges)
      for (const op of [e.from, e.to]) {
        if (!this.edgesOf.has(op)) this.edgesOf.set(op, []);
        this.edgesOf.get(op).push(e);
      }
    this.canvas = h('canvas', {
      class: 'graph-canvas',
      role: 'img',
      tabindex: '0',
      'aria-label': `${label}. Arrow keys go to operands, users and neighbours, Enter shows an op in full, plus and minus zoom, 0 shows all.`
    });
    this.readout = h('p', {class: 'readout muted', 'aria-hidden': 'true'},
        'Drag to move, turn the wheel to zoom, click an op. Keys: arrows, Enter, plus, minus, 0.');
    const button = (text, name, act) => h('button', {type: 'button', 'aria-label': name, title: name, onclick: act}, text);
    this.element = h('div', {class: 'graph'}, h('div', {class: 'graph-place'}, this.canvas,
        h('div', {class: 'graph-buttons'}, button('+', 'Zoom in', () => this.zoom(STEP)),
            button('−', 'Zoom out', () => this.zoom(1 / STEP)), button('All', 'Show all', () => this.fit()))), this.readout);
    this.listen();
  }

  listen() {
    const c = this.canvas;
    let from = null, moved = false;
    c.addEventListener('pointerdown', (e) => {
      if (e.button) return;
      from = {x: e.clientX, y: e.clientY, left: this.left, top: this.top};
      moved = false;
      c.setPointerCapture(e.pointerId);
    });
    c.addEventListener('pointermove', (e) => {
      if (!from) return this.hover(this.under(e));
      const dx = e.clientX - from.x, dy = e.clientY - from.y;
      if (Math.hypot(dx, dy) > 4) moved = true;
      if (moved) this.move(from.left - dx / this.scale, from.top - dy / this.scale);
    });
    c.addEventListener('pointerup', (e) => {
      const click = from && !moved;
      from = null;
      const box = click ? this.under(e) : null;
      if (!box) return;
      this.select(box, false);
      this.o.onOpen(box);
    });
    c.addEventListener('pointercancel', () => {
      from = null;
    });
    c.addEventListener('wheel', (e) => {
      e.preventDefault();
      const frame = c.getBoundingClientRect();
      this.zoom(Math.exp(-Math.max(-60, Math.min(60, e.deltaY)) / 200), e.clientX - frame.left, e.clientY - frame.top);
    }, {passive: false});
    c.addEventListener('keydown', (e) => this.key(e));
    this.repaint = () => {
      if (!c.isConnected) return removeEventListener('themechange', this.repaint);
      this.colors = null;
      this.later();
    };
    addEventListener('themechange', this.repaint);
    new ResizeObserver(() => this.size()).observe(c);
  }

  size() {
    const frame = this.canvas.getBoundingClientRect();
    if (!frame.width || (frame.width === this.width && frame.height === this.height)) return;
    const first = !this.width;
    Object.assign(this, {width: frame.width, height: frame.height});
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(frame.width * this.ratio);
    this.canvas.height = Math.round(frame.height * this.ratio);
    if (first) this.begin();
    this.paint();
  }

  // Where a reader starts: all of it if that can be read, else the chosen op, else the first ops in sight.
  begin() {
    const all = this.fitting();
    if (this.selected)
      this.center(this.selected, Math.max(READABLE + 0.3, Math.min(1, all)));
    else if (all >= SMALL || !this.d.nodes.length)
      this.fit();
    else {
      this.scale = COMFORTABLE;
      const used = this.d.nodes.filter((n) => (this.edgesOf.get(n.op) || []).some((e) => e.from === n.op));
      const first = (used.length ? used : this.d.nodes).reduce((a, b) => (b.y < a.y || (b.y === a.y && b.x < a.x) ? b : a));
      this.move(first.x + first.w / 2 - this.width / this.scale / 2, first.y - 60 / this.scale);
    }
  }

  fitting() {
    return Math.max(LEAST, Math.min(1, this.width / Math.max(1, this.d.width), this.height / Math.max(1, this.d.height)));
  }

  fit() {
    this.scale = this.fitting();
    this.move((this.d.width - this.width / this.scale) / 2, (this.d.height - this.height / this.scale) / 2);
  }

  move(left, top) {
    const w = this.width / this.scale, hh = this.height / this.scale;
    this.left = Math.max(-w * 0.9, Math.min(this.d.width - w * 0.1, left));
    this.top = Math.max(-hh * 0.9, Math.min(this.d.height - hh * 0.1, top));
    this.later();
  }

  zoom(by, x = this.width / 2, y = this.height / 2) {
    const to = Math.max(Math.min(LEAST, this.fitting()), Math.min(MOST, this.scale * by));
    const left = this.left + x / this.scale - x / to, top = this.top + y / this.scale - y / to;
    this.scale = to;
    this.move(left, top);
  }

  center(box, scale = Math.max(this.scale, READABLE + 0.3)) {
    this.scale = scale;
    // Of a cluster its head, where its name is.
    const y = box.cluster ? box.y + Math.min(box.h, this.height / scale) / 2 : box.y + box.h / 2;
    this.move(box.x + box.w / 2 - this.width / scale / 2, y - this.height / scale / 2);
  }

  // The op in sight, or nothing: {x, y} of its middle on the canvas.
  placeOf(op) {
    const box = this.byOp.get(op);
    if (!box) return null;
    const y = box.cluster ? box.y + 12 : box.y + box.h / 2;
    return {x: (box.x + box.w / 2 - this.left) * this.scale, y: (y - this.top) * this.scale};
  }

  under(e) {
    const frame = this.canvas.getBoundingClientRect();
    const x = this.left + (e.clientX - frame.left) / this.scale, y = this.top + (e.clientY - frame.top) / this.scale;
    const inside = (b) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h;
    return this.d.nodes.find(inside) || this.d.clusters.findLast(inside) || null;
  }

  hover(box) {
    this.canvas.style.setProperty('cursor', box ? 'pointer' : 'grab');
    if (box && box !== this.selected) this.readout.textContent = this.words(box);
  }

  words(box) {
    const first = box.lines.map((l) => l.text.trim()).filter((t) => t && t !== box.op);
    return [box.op, ...first].filter(Boolean).join(', ');
  }

  select(box, say) {
    this.selected = box;
    if (box) this.readout.textContent = this.words(box);
    if (box && say) announce(this.words(box));
    if (this.o.onSelect) this.o.onSelect(box);
    this.later();
  }

  // Takes an op and shows it; false: it is not in the drawing.
  go(op) {
    const box = this.byOp.get(op);
    if (!box) return false;
    this.select(box, true);
    if (this.width) this.center(box);
    return true;
  }

  // The next node from the selected one: an operand above, a user below, a neighbour at its side.
  next(key) {
    const at = this.selected, nodes = this.d.nodes;
    if (!at) return nodes[0] || null;
    const edges = this.edgesOf.get(at.op) || [];
    if (key === 'ArrowUp') return this.byOp.get(edges.find((e) => e.to === at.op)?.from) || null;
    if (key === 'ArrowDown') return this.byOp.get(edges.find((e) => e.from === at.op)?.to) || null;
    const sign = key === 'ArrowRight' ? 1 : -1;
    let best = null, least = Infinity;
    for (const n of nodes) {
      const dx = (n.x + n.w / 2 - at.x - at.w / 2) * sign, dy = Math.abs(n.y + n.h / 2 - at.y - at.h / 2);
      if (n === at || dx <= 0 || dy > at.h) continue;
      if (dx + dy < least) {
        least = dx + dy;
        best = n;
      }
    }
    return best;
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const zooms = {'+': STEP, '=': STEP, '-': 1 / STEP};
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (e.key in moves && e.shiftKey) {
      const far = 80 / this.scale;
      this.move(this.left + moves[e.key][0] * far, this.top + moves[e.key][1] * far);
    } else if (e.key in moves) {
      const box = this.next(e.key);
      if (box) {
        this.select(box, true);
        this.center(box);
      } else
        announce('Nothing there');
    } else if (e.key in zooms)
      this.zoom(zooms[e.key]);
    else if (e.key === '0')
      this.fit();
    else if (e.key === 'Enter' && this.selected)
      this.o.onOpen(this.selected);
    else if (e.key === 'Escape' && this.selected)
      this.select(null, false);
    else
      return;
    e.preventDefault();
  }

  later() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  tokens() {
    const style = getComputedStyle(this.canvas), of = (name) => style.getPropertyValue(name).trim();
    return (this.colors ||= {line: of('--muted'), strong: of('--accent'), text: of('--text'), ground: of('--trace-ground')});
  }

  paint() {
    if (!this.width) return;
    const began = performance.now();
    const g = this.canvas.getContext('2d'), c = this.tokens(), k = this.scale * this.ratio;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = c.ground;
    g.fillRect(0, 0, this.canvas.width, this.canvas.height);
    g.setTransform(k, 0, 0, k, -this.left * k, -this.top * k);
    const right = this.left + this.width / this.scale, below = this.top + this.height / this.scale;
    const seen = (b) => b.x < right && b.x + b.w > this.left && b.y < below && b.y + b.h > this.top;
    for (const b of this.d.clusters) if (seen(b)) this.paintBox(g, b, c);
    this.paintEdges(g, c, right, below);
    for (const b of this.d.nodes) if (seen(b)) this.paintBox(g, b, c);
    if (this.selected) {
      g.strokeStyle = c.strong;
      g.lineWidth = Math.max(3, 3 / this.scale);
      g.strokeRect(this.selected.x - 3, this.selected.y - 3, this.selected.w + 6, this.selected.h + 6);
    }
    this.canvas.dataset.view = `${this.scale.toFixed(4)} ${this.left.toFixed(1)} ${this.top.toFixed(1)}`;
    this.canvas.dataset.painted = String(Math.round(performance.now() - began));
  }

  paintBox(g, b, c) {
    const empty = b.fill === 'none';
    g.fillStyle = empty ? 'transparent' : b.fill;
    g.strokeStyle = empty ? c.line : b.stroke;
    g.lineWidth = Math.max(1, 0.6 / this.scale);
    g.setLineDash(b.dashed && this.scale > 0.2 ? [5, 2] : []);
    g.beginPath();
    if (b.kind === 'ellipse')
      g.ellipse(b.x + b.w / 2, b.y + b.h / 2, b.w / 2, b.h / 2, 0, 0, 2 * Math.PI);
    else if (b.kind === 'polygon') {
      g.moveTo(b.x + b.w / 2, b.y);
      g.lineTo(b.x + b.w, b.y + b.h / 2);
      g.lineTo(b.x + b.w / 2, b.y + b.h);
      g.lineTo(b.x, b.y + b.h / 2);
      g.closePath();
    } else
      g.rect(b.x, b.y, b.w, b.h);
    g.fill();
    g.stroke();
    g.setLineDash([]);
    if (this.scale < READABLE) return;
    g.fillStyle = empty ? c.text : b.ink;
    g.textAlign = 'center';
    for (const line of b.lines) {
      g.font = `${line.bold ? '600 ' : ''}12px system-ui, sans-serif`;
      g.fillText(short(line.text, 200), line.x, line.y, Math.max(40, b.w - 6));
    }
  }

  paintEdges(g, c, right, below) {
    const mine = this.selected ? this.selected.op : null;
    const draw = (list, color, width, dash) => {
      g.strokeStyle = g.fillStyle = color;
      g.lineWidth = Math.max(width, 0.5 * width / this.scale);
      g.setLineDash(dash && this.scale > 0.2 ? [5, 3] : []);
      g.beginPath();
      for (const {at} of list) {
        g.moveTo(at[0], at[1]);
        if (this.scale < 0.08)
          g.lineTo(at[6], at[7]);
        else
          g.bezierCurveTo(at[2], at[3], at[4], at[5], at[6], at[7]);
      }
      g.globalAlpha = this.scale < 0.08 ? 0.3 : 1;  // from afar edges would hide the nodes
      g.stroke();
      g.globalAlpha = 1;
      g.setLineDash([]);
      if (this.scale < 0.25) return;
      g.beginPath();
      for (const {at} of list) {
        g.moveTo(at[6], at[7]);
        g.lineTo(at[6] - 4, at[7] - 8);
        g.lineTo(at[6] + 4, at[7] - 8);
        g.closePath();
      }
      g.fill();
    };
    const seen = this.d.edges.filter(({at}) => Math.min(at[0], at[6]) < right && Math.max(at[0], at[6]) > this.left &&
        Math.min(at[1], at[7]) < below && Math.max(at[1], at[7]) > this.top);
    draw(seen.filter((e) => !e.dashed), c.line, 1, false);
    draw(seen.filter((e) => e.dashed), c.line, 1, true);
    if (mine) draw(seen.filter((e) => e.from === mine || e.to === mine), c.strong, 2, false);
  }
}
