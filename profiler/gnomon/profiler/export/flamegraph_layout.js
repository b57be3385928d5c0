"use strict";
/* Where each rectangle of the flame graph lies. Knows the data, nothing of the page.

   A layout is a set of equally long arrays, one entry per rectangle: start, stop (seconds of sampled time), depth, node
   (-1: the whole run), up (the caller's rectangle), own (seconds); and `rows`: the rectangles of each depth from left
   to right. Children follow their caller. */

const Layout = (() => {
  function empty(total) {
    const made = { start: [0], stop: [total], depth: [0], node: [-1], up: [-1], own: [0], rows: [[0]], total };
    made.add = (node, up, start, stop) => {
      const at = made.node.length, depth = made.depth[up] + 1;
      made.start.push(start); made.stop.push(stop); made.depth.push(depth);
      made.node.push(node); made.up.push(up); made.own.push(0);
      (made.rows[depth] ||= []).push(at);
      return at;
    };
    return made;
  }

  /* Which tree each node belongs to: the number of its root. A caller always comes before its callees. */
  function roots(parent) {
    const root = new Int32Array(parent.length);
    for (let n = 0; n < parent.length; n++) root[n] = parent[n] < 0 ? n : root[parent[n]];
    return root;
  }

  /* Which samples count: those of the chosen thread (-1: of all), without those that wait if only work is wanted. */
  function wanted(profile, { thread, busy }) {
    const root = roots(profile.nodes.parent), { idle } = profile.functions;
    return (node) => (thread < 0 || root[node] === thread) && !(busy && idle[profile.nodes.function[node]]);
  }

  /* Every function once below each caller, the heaviest first. */
  function heavy(profile, choice) {
    const { parent } = profile.nodes, { node, value } = profile.samples, counts = wanted(profile, choice);
    const own = new Float64Array(parent.length), sum = new Float64Array(parent.length);
    for (let i = 0; i < node.length; i++) if (counts(node[i])) own[node[i]] += value[i];
    sum.set(own);
    const below = new Map([[-1, []]]);
    let total = 0;
    for (let n = parent.length - 1; n >= 0; n--) {
      if (!sum[n]) continue;
      if (parent[n] >= 0) sum[parent[n]] += sum[n]; else total += sum[n];
      if (below.has(parent[n])) below.get(parent[n]).push(n); else below.set(parent[n], [n]);
    }
    const made = empty(total), waiting = [0];
    while (waiting.length) {
      const up = waiting.pop();
      let at = made.start[up];
      const kids = below.get(made.node[up]) || [];
      kids.sort((a, b) => sum[b] - sum[a] || a - b);
      const first = made.node.length;
      for (const n of kids) {
        const rectangle = made.add(n, up, at, at + sum[n]);
        made.own[rectangle] = own[n];
        at += sum[n];
      }
      for (let k = made.node.length - 1; k >= first; k--) waiting.push(k);
    }
    return sorted(made);
  }

  /* What one slice of time holds: seconds at or below each node, seconds in it, callees that were seen. */
  function slices(profile, choice) {
    const { parent } = profile.nodes, { slice, node, value } = profile.samples, counts = wanted(profile, choice);
    const found = profile.slices.start.map(() => ({ sum: new Map(), own: new Map(), below: new Map() }));
    for (let i = 0; i < node.length; i++) {
      if (!counts(node[i])) continue;
      const { sum, own, below } = found[slice[i]];
      own.set(node[i], (own.get(node[i]) || 0) + value[i]);
      for (let n = node[i], isNew = false; ; n = parent[n]) {
        isNew = !sum.has(n);
        sum.set(n, (sum.get(n) || 0) + value[i]);
        if (isNew) { if (below.has(parent[n])) below.get(parent[n]).push(n); else below.set(parent[n], [n]); }
        if (parent[n] < 0) break;
      }
    }
    return found;
  }

  /* Threads side by side, in each the slices of time one after the other; what goes on over a border stays one piece.
     Inside a slice the order is not known: first comes what was running before, last what runs on. */
  function time(profile, choice) {
    const found = slices(profile, choice);
    const tops = [...new Set(found.flatMap((s) => s.below.get(-1) || []))].sort((a, b) => a - b);
    let total = 0;
    for (const s of found) for (const n of s.below.get(-1) || []) total += s.sum.get(n);
    const made = empty(total), open = [0], slack = total * 1e-9;
    const place = (n, up, at, here, next) => {
      const depth = made.depth[up] + 1, last = open[depth], stop = at + here.sum.get(n);
      const goesOn = last !== undefined && made.node[last] === n && made.up[last] === up && Math.abs(made.stop[last] - at) <= slack;
      const rectangle = goesOn ? last : made.add(n, up, at, stop);
      made.stop[rectangle] = stop;
      open[depth] = rectangle;
      if (!goesOn) open.length = depth + 1;
      const kids = (here.below.get(n) || []).slice().sort((a, b) => a - b);
      const running = open[depth + 1] === undefined ? -1 : made.node[open[depth + 1]];
      const first = goesOn ? kids.indexOf(running) : -1;
      if (first > 0) kids.unshift(...kids.splice(first, 1));
      const later = next && next.below.get(n);
      const lastKid = later ? kids.findIndex((k, i) => later.includes(k) && (i > 0 || first < 0 || kids.length === 1)) : -1;
      if (lastKid >= 0) kids.push(...kids.splice(lastKid, 1));
      const own = here.own.get(n) || 0;
      made.own[rectangle] += own;
      kids.forEach((k, i) => {
        // Own time goes before the callee that runs on, behind the one that ran before.
        if (own && i === kids.length - 1 && lastKid >= 0 && !(first >= 0 && kids.length === 1)) at += own;
        at = place(k, rectangle, at, here, next);
      });
      return stop;
    };
    let at = 0;
    for (const n of tops) {
      for (let s = 0; s < found.length; s++) if (found[s].sum.has(n)) at = place(n, 0, at, found[s], found[s + 1]);
    }
    return sorted(made);
  }

  function sorted(made) {
    for (const row of made.rows) row.sort((a, b) => made.start[a] - made.start[b]);
    return made;
  }

  /* Seconds in rectangles that are not below another one of the set: what a set of matches covers without counting twice. */
  function covered(made, chosen) {
    let sum = 0;
    for (const r of chosen) {
      let up = made.up[r];
      while (up >= 0 && !chosen.has(up)) up = made.up[up];
      if (up < 0) sum += made.stop[r] - made.start[r];
    }
    return sum;
  }

  return { heavy, time, covered };
})();
