// Stacks of code as a tree of boxes: what of each is shown, and where its box lies.

/**
 * Return the tree of a role's stacks: node 0 is all of it, each other node a frame below its parent, parents first.
 * `leaf[i]` is the node that stack i ends in.
 */
export function treeOf(stacks) {
  const tree = { frame: [-1], parent: [-1], depth: [0], leaf: [] };
  const below = [new Map()];
  for (const stack of stacks) {
    let node = 0;
    for (const frame of stack) {
      if (!below[node].has(frame)) {
        below[node].set(frame, tree.frame.length);
        tree.frame.push(frame);
        tree.parent.push(node);
        tree.depth.push(tree.depth[node] + 1);
        below.push(new Map());
      }
      node = below[node].get(frame);
    }
    tree.leaf.push(node);
  }
  return tree;
}

/**
 * Return the seconds of each node with all that lies below it: of rows (bucket, phase, stack, seconds, idle_gpu_s) in a
 * phase (any where it is null, but for `without`), and in buckets that touch the window [from, to] (s), each with the
 * share within it.
 */
export function sumsOf(tree, rows, { bucket_s, measure, phase, without = null, window }) {
  const sums = new Float64Array(tree.frame.length);
  const values = rows[measure];
  for (let i = 0; i < values.length; i += 1) {
    if (phase !== null && rows.phase[i] !== phase) continue;
    if (without !== null && rows.phase[i] === without) continue;
    sums[tree.leaf[rows.stack[i]]] += values[i] * shareWithin(rows.bucket[i] * bucket_s, bucket_s, window);
  }
  for (let node = sums.length - 1; node > 0; node -= 1) sums[tree.parent[node]] += sums[node];
  return sums;
}

function shareWithin(start, length, window) {
  if (!window) return 1;
  const shared = Math.min(start + length, window[1]) - Math.max(start, window[0]);
  return Math.min(Math.max(shared / length, 0), 1);
}

/**
 * Return the boxes of the node `root`, of those above it, and of all below that are at least `least` of its width:
 * { node, row, x, width }, x and width as shares of 1; the largest of siblings comes first.
 */
export function boxesOf(tree, sums, root, least) {
  const children = tree.frame.map(() => []);
  for (let node = 1; node < sums.length; node += 1) if (sums[node] > 0) children[tree.parent[node]].push(node);
  const boxes = above(tree, root).map((node) => ({ node, row: tree.depth[node], x: 0, width: 1 }));
  const queue = [{ node: root, row: tree.depth[root], x: 0, width: 1 }];
  while (queue.length) {
    const box = queue.shift();
    boxes.push(box);
    let x = box.x;
    for (const node of children[box.node].sort((a, b) => sums[b] - sums[a])) {
      const width = (box.width * sums[node]) / sums[box.node];
      if (width >= least) queue.push({ node, row: box.row + 1, x, width });
      x += width;
    }
  }
  return boxes;
}

/** Return the nodes above a node, the outermost first. */
export function above(tree, node) {
  const nodes = [];
  for (let at = tree.parent[node]; at >= 0; at = tree.parent[at]) nodes.unshift(at);
  return nodes;
}

/** Return the seconds of all nodes that match, each second once: what lies below a match is its own already. */
export function matched(tree, sums, isMatch) {
  const within = new Uint8Array(sums.length);
  let total = 0;
  for (let node = 1; node < sums.length; node += 1) {
    const covered = within[tree.parent[node]];
    within[node] = covered || isMatch(node) ? 1 : 0;
    if (within[node] && !covered) total += sums[node];
  }
  return total;
}
