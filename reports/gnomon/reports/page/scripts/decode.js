// The recording decoded: base64 of zlib-compressed msgpack, columns as [code, delta, bytes].
const byName = (names, valueOf) => Object.fromEntries(names.map((name, i) => [name, valueOf(name, i)]));
function unpack(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = new TextDecoder();
  let at = 0;
  const take = (n) => bytes.subarray(at, at += n);
  const uint = (n) => { const v = n === 1 ? view.getUint8(at) : n === 2 ? view.getUint16(at) : n === 4 ? view.getUint32(at) : Number(view.getBigUint64(at)); at += n; return v; };
  const int = (n) => { const v = n === 1 ? view.getInt8(at) : n === 2 ? view.getInt16(at) : n === 4 ? view.getInt32(at) : Number(view.getBigInt64(at)); at += n; return v; };
  const many = (n) => { const list = []; for (let i = 0; i < n; i++) list.push(value()); return list; };
  const map = (n) => { const result = Object.create(null); for (let i = 0; i < n; i++) { const key = value(); result[key] = value(); } return result; };
  function value() {
    const b = uint(1);
    if (b < 0x80) return b;
    if (b < 0x90) return map(b & 15);
    if (b < 0xa0) return many(b & 15);
    if (b < 0xc0) return text.decode(take(b & 31));
    if (b >= 0xe0) return b - 256;
    switch (b) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return take(uint(1 << (b - 0xc4)));
      case 0xca: at += 4; return view.getFloat32(at - 4);
      case 0xcb: at += 8; return view.getFloat64(at - 8);
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return uint(1 << (b - 0xcc));
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return int(1 << (b - 0xd0));
      case 0xd9: case 0xda: case 0xdb: return text.decode(take(uint(1 << (b - 0xd9))));
      case 0xdc: case 0xdd: return many(uint(2 << (b - 0xdc)));
      case 0xde: case 0xdf: return map(uint(2 << (b - 0xde)));
    }
    throw new Error("unknown byte in the recording: " + b);
  }
  return value();
}

function column([code, delta, bytes]) {
  const kinds = { B: Uint8Array, H: Uint16Array, I: Uint32Array, i: Int32Array, q: BigInt64Array, f: Float32Array };
  const raw = new kinds[code](bytes.slice().buffer);  // a copy is aligned
  if (!delta && code !== "q") return raw;
  const result = new Float64Array(raw.length).map((_, i) => Number(raw[i]));
  if (delta) for (let i = 1; i < result.length; i++) result[i] += result[i - 1];
  return result;
}

const columns = (body, names) => byName(names, (name) => column(body[name]));

const packed = () => {
  const coded = byId("recording").textContent;
  return Uint8Array.fromBase64 ? Uint8Array.fromBase64(coded) : Uint8Array.from(atob(coded), (letter) => letter.charCodeAt(0));
};

// A promise of everything the panels compute from. Columns are typed arrays; a worker's row -1 is an unknown one.
async function decode() {
  const whole = new ReadableStream({ start(source) { source.enqueue(packed()); source.close(); } });
  const stream = whole.pipeThrough(new DecompressionStream("deflate"));
  const body = unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
  const runs = columns(body.runs, ["prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "nbytes", "ok", "cpus"]);
  runs.count = runs.begins.length;
  runs.keys = runs.count ? body.runs.keys.split("\n") : [];
  runs.names = body.runs.prefix_names;
  runs.ends = runs.begins.map((begin, i) => begin + runs.decodes[i] + runs.computes[i] + runs.encodes[i]);
  if (runs.cpus.length !== runs.count) runs.cpus = new Float64Array(runs.count).fill(-1);
  const transfers = columns(body.transfers, ["transports", "froms", "tos", "begins", "lengths", "nbytes", "types", "waits", "holds", "serialises"]);
  transfers.names = body.transfers.transport_names;
  transfers.typeNames = body.transfers.type_names;
  const workers = body.workers.map(([id, name, address, nthreads, host, joined, left, reason]) => ({
    id, name, address, nthreads, host, joined, left, reason,
    label: /^[0-9]+$/.test(name) ? "worker " + name : name || address || "worker " + id,
    low: Math.min(Math.max(0, joined), body.duration),
  }));
  for (const worker of workers) worker.high = Math.max(worker.low, worker.left === null ? body.duration : Math.min(worker.left, body.duration));
  const series = columns(body.series, ["times", "workers", "processes"]);
  series.values = columns(body.series.values, Object.keys(body.series.values));
  const demand = columns(body.demand, ["times", "workers", "kinds", "values"]);
  demand.known = body.demand.known;
  return {
    ...body, ticks: body.ticks, duration: body.duration, workers, runs, transfers, series, demand,
    missed: body.ledgers.runs ? body.ledgers.runs[0] - body.ledgers.runs[1] : 0,
  };
}
