// Numbers as people read them. Every function has a twin in Python and says the same, to the last digit.
const TICKS = 1e7;

function fixed(value, digits) {
  const scaled = Math.abs(value) * 10 ** digits;
  let text = Math.abs(value).toFixed(digits);
  if (scaled - Math.floor(scaled) === 0.5 && scaled < 1e15) {  // halves go to the even digit, as in Python
    const exact = Math.abs(value).toFixed(Math.min(100, digits + 40)), rest = exact.slice(exact.indexOf(".") + 1 + digits);
    if (/^50*$/.test(rest)) text = (2 * Math.round(scaled / 2) / 10 ** digits).toFixed(digits);
  }
  const [whole, part] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
  return value < 0 ? "-" + grouped : grouped;
}
const plain = (value, digits) => fixed(value, digits).replaceAll(",", "");
const digits3 = (value) => Math.abs(value) >= 99.95 ? fixed(value, 0) : plain(value, Math.abs(value) >= 9.995 ? 1 : 2);

function timeText(ticks) {
  const s = ticks / TICKS, size = Math.abs(s);
  if (size === 0) return "0 s";
  if (size >= 3600) return digits3(s / 3600) + " h";
  if (size >= 120) return digits3(s / 60) + " min";
  if (size >= 0.9995) return digits3(s) + " s";
  if (size >= 0.9995e-3) return digits3(s * 1e3) + " ms";
  if (size >= 0.9995e-6) return digits3(s * 1e6) + " µs";
  return plain(s * 1e9, 0) + " ns";
}
function bytesText(count) {
  if (Math.abs(count) < 1024) return plain(count, 0) + " B";
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    count /= 1024;
    if (Math.abs(count) < 1000) return digits3(count) + " " + unit;
  }
  return fixed(count / 1024, 1) + " PiB";
}
const countText = (count) => fixed(count, 0);
function rateText(count, ticks) {
  if (ticks <= 0) return "-";
  const rate = count * TICKS / ticks;
  return (rate >= 100 ? fixed(rate, 0) : digits3(rate)) + " /s";
}
function cut(text, length = 80) {
  const letters = [...text];
  if (letters.length <= length) return text;
  const head = Math.floor((length - 1) * 2 / 3);
  return letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (length - 1 - head)).join("");
}

// Whole shares of an amount in proportion to the weights, which sum to it exactly. Products need more than 53 bits.
function apportion(amount, weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (!total) return weights.map((_, i) => i === 0 ? amount : 0);
  const all = BigInt(total), products = weights.map((weight) => BigInt(amount) * BigInt(weight));
  const shares = products.map((product) => Number(product / all));
  const rest = amount - shares.reduce((sum, share) => sum + share, 0);
  const order = weights.map((_, i) => i).sort((a, b) => {
    const x = products[a] % all, y = products[b] % all;
    return x < y ? 1 : x > y ? -1 : a - b;
  });
  for (const i of order.slice(0, rest)) shares[i]++;
  return shares;
}
const percentages = (amounts) => amounts.some((amount) => amount) ? apportion(1000, amounts).map((share) => share / 10) : amounts.map(() => 0);

// One unit for a whole table.
function scaleFor(most) {
  const [unit, ticks, decimals] = most >= 1000 * 3600 * TICKS ? ["h", 3600 * TICKS, 1]
    : most >= TICKS ? ["s", TICKS, most >= 10000 * TICKS ? 1 : most >= 100 * TICKS ? 2 : 3] : ["ms", TICKS / 1000, 2];
  return {
    unit,
    text: (quanta) => fixed(quanta / 10 ** decimals, decimals),
    quanta: (amounts) => apportion(half(amounts.reduce((sum, each) => sum + each, 0) * 10 ** decimals / ticks), amounts),
  };
}
const half = (value) => value - Math.floor(value) === 0.5 ? 2 * Math.round(value / 2) : Math.round(value);
const seconds = (ticks) => String(+(ticks / TICKS).toFixed(7));
