// Takes the pictures of the documentation: node screenshots.mjs BASE FOLDER. Each is a PNG with a palette, below 150 kB.
import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";
import { chromium } from "playwright-core";

const [base, folder] = process.argv.slice(2);
const LIMIT = 150_000;
const pictures = [
  { name: "overview-light", path: "", width: 1280, height: 800, colorScheme: "light" },
  { name: "overview-dark", path: "", width: 1280, height: 800, colorScheme: "dark" },
  { name: "overview-phone", path: "", width: 390, height: 844, colorScheme: "light" },
  { name: "week", path: "weeks#pairs", width: 1280, height: 900, colorScheme: "light" },
  { name: "latency", path: "latency", width: 1280, height: 900, colorScheme: "light" },
];

// Returns a PNG with the 256 most frequent colours of an image; every other colour becomes the nearest of them.
const withPalette = ({ width, height, pixels }) => {
  const keyOf = (at) => pixels.readUIntBE(at, 3);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 4) counts.set(keyOf(at), (counts.get(keyOf(at)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([key]) => key);
  const places = new Map(palette.map((key, place) => [key, place]));
  const parts = (key) => [key >> 16, (key >> 8) & 255, key & 255];
  const distance = (a, b) => parts(a).reduce((sum, part, index) => sum + (part - parts(b)[index]) ** 2, 0);
  const nearest = (key) => {
    if (!places.has(key)) places.set(key, places.get(palette.reduce((best, one) => (distance(one, key) < distance(best, key) ? one : best))));
    return places.get(key);
  };
  const rows = Buffer.alloc((width + 1) * height); // Each row starts with its filter type, 0.
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) rows[y * (width + 1) + x + 1] = nearest(keyOf((y * width + x) * 4));
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8); // 8 bits, palette.
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const colours = Buffer.from(palette.flatMap(parts));
  return Buffer.concat([signature, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
};

// Returns the pixels of a PNG, which the browser decodes.
const decoded = async (page, png) => {
  const { width, height, base64 } = await page.evaluate(async (url) => {
    const image = await createImageBitmap(await (await fetch(url)).blob());
    const context = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height }).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let text = "";
    for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
    return { width: image.width, height: image.height, base64: btoa(text) };
  }, `data:image/png;base64,${png.toString("base64")}`);
  return { width, height, pixels: Buffer.from(base64, "base64") };
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const decoder = await browser.newPage();
for (const { name, path, width, height, colorScheme } of pictures) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(base + path);
  await page.locator("text=of 12 runs").first().waitFor({ state: "attached" }).catch(() => {});
  const png = withPalette(await decoded(decoder, await page.screenshot()));
  if (png.length > LIMIT) throw new Error(`${name}.png has ${png.length} bytes, more than ${LIMIT}`);
  writeFileSync(`${folder}/${name}.png`, png);
  console.log(`${name}.png: ${png.length} bytes`);
  await context.close();
}
await browser.close();
