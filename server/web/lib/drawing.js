// SPDX-License-Identifier: Apache-2.0
// The drawing of a graph that graph_viewer makes (format=html), as numbers and texts.  It is read from its
// text: no document is made of it, so nothing in it can run, and a browser's parser takes ten times as long.

const ENTITIES = {'&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&'};

const plain = (text) => (text.includes('&') ? text.replace(/&(?:lt|gt|quot|amp);/g, (e) => ENTITIES[e]) : text);
const numbers = (text) => (text.match(/-?\d+(?:\.\d+)?/g) || []).map(Number);

function attributes(text) {
  const out = {};
  const parts = text.split('"');  // x=, 1, y=, 2, nothing
  for (let i = 0; i + 1 < parts.length; i += 2) out[parts[i].trim().slice(0, -1)] = parts[i + 1];
  return out;
}

function shapeOf(kind, a) {
  const n = (key) => Number(a[key]) || 0;
  if (kind === 'ellipse') return {x: n('cx') - n('rx'), y: n('cy') - n('ry'), w: 2 * n('rx'), h: 2 * n('ry')};
  if (kind === 'rect') return {x: n('x'), y: n('y'), w: n('width'), h: n('height')};
  const at = numbers(a.points || '');
  const xs = at.filter((_, i) => i % 2 === 0), ys = at.filter((_, i) => i % 2);
  const x = Math.min(...xs), y = Math.min(...ys);
  return {x, y, w: Math.max(...xs) - x, h: Math.max(...ys) - y};
}

// Puts what an element says into GROUP, which is a node, a cluster or an edge.
function take(group, tag, a) {
  if (tag === 'g') {
    group.ink = a.fill || group.ink;
  } else if (tag === 'path') {
    group.at = numbers(a.d || '').slice(0, 8);
    group.dashed = Boolean(a['stroke-dasharray']);
  } else if (['rect', 'ellipse', 'polygon'].includes(tag) && !group.kind) {
    Object.assign(group, shapeOf(tag, a), {
      kind: tag,
      fill: a.fill || 'none',
      stroke: a.stroke || 'none',
      dashed: Boolean(a['stroke-dasharray'])
    });
  }
}

// A group of which all was read goes to its list.
function put(out, group) {
  if (group.is === 'edge') {
    const cut = group.tip.indexOf(' -> ');
    if (cut >= 0 && group.at && group.at.length === 8)
      out.edges.push({at: group.at, from: group.tip.slice(0, cut), to: group.tip.slice(cut + 4), dashed: group.dashed});
  } else if (group.kind) {
    const cluster = group.is === 'cluster';
    if (cluster) group.op = group.lines.find((l) => l.bold)?.text || '';
    (cluster ? out.clusters : out.nodes).push({...group, cluster});
  }
}

/* {width, height, title: [text], nodes, clusters, edges}; null: there is no drawing in TEXT.
 * Nodes and clusters: {op, tip, kind (rect, ellipse, polygon), x, y, w, h, fill, stroke, dashed, ink, cluster,
 * lines [{x, y, text, bold}]}; edges: {at [8 numbers of a curve], from, to (ops), dashed}. */
export function parse(text) {
  const begin = text.indexOf('<svg'), end = text.lastIndexOf('</svg>');
  if (begin < 0 || end < begin) return null;
  const out = {width: 0, height: 0, title: [], nodes: [], clusters: [], edges: []};
  let group = null, depth = 0, line = null;
  for (let at = begin, close; at >= 0 && at < end; at = text.indexOf('<', close)) {
    close = text.indexOf('>', at);
    if (close < 0) break;
    const element = text.slice(at + 1, close), closes = element[0] === '/', empty = element.endsWith('/');
    const tag = /^[a-z]*/.exec(closes ? element.slice(1) : element)[0];
    const next = text.indexOf('<', close);
    const words = (line || tag === 'title' || tag === 'text') && next > close + 1 ? plain(text.slice(close + 1, next)) : '';
    if (closes) {
      if (tag === 'g' && group && --depth === 0) {
        put(out, group);
        group = null;
      }
      if (tag === 'text' && line && !group) out.title.push(line.text);
      if (tag === 'text') line = null;
      if (tag === 'tspan' && line) line.text += words;
      continue;
    }
    if (tag === 'title') {
      if (group) group.tip = words;
      continue;
    }
    if (tag === 'tspan') {
      if (line && !line.text && element.includes('"bold"')) line.bold = true;
      if (line) line.text += words;
      continue;
    }
    const a = attributes(element.slice(tag.length, empty ? -1 : undefined));
    if (tag === 'svg') {
      out.width = Number(a.width) || 0;
      out.height = Number(a.height) || 0;
    } else if (tag === 'g' && !group) {
      group = {is: a.class, op: plain(a['data-op'] || ''), tip: '', kind: '', ink: 'black', lines: []};
      depth = 1;
    } else if (tag === 'text') {
      line = {x: Number(a.x) || 0, y: Number(a.y) || 0, text: words, bold: false};
      if (group) group.lines.push(line);
    } else if (group) {
      if (tag === 'g' && !empty) depth++;
      take(group, tag, a);
    }
  }
  return out;
}
