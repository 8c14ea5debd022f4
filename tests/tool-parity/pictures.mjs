// Pictures of each type and size, made with the original's own encoder.
import { createRequire } from "node:module";
import { join } from "node:path";
import { deflateSync } from "node:zlib";

function crc(bytes) {
	let value = ~0;
	for (const byte of bytes) {
		value ^= byte;
		for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
	}
	return ~value >>> 0;
}

export function png(width, height, pixel) {
	const rows = Buffer.alloc((width * 3 + 1) * height);
	for (let y = 0; y < height; y++)
		for (let x = 0; x < width; x++) rows.set(pixel(x, y), y * (width * 3 + 1) + 1 + x * 3);
	const chunk = (type, data) => {
		const body = Buffer.concat([Buffer.from(type), data]);
		const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
		length.writeUInt32BE(data.length);
		sum.writeUInt32BE(crc(body));
		return Buffer.concat([length, body, sum]);
	};
	const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
	header.writeUInt32BE(width, 0);
	header.writeUInt32BE(height, 4);
	const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
	return Buffer.concat([start, chunk("IHDR", header), chunk("IDAT", deflateSync(rows, { level: 1 })), chunk("IEND", Buffer.alloc(0))]);
}

/** A GIF of one colour: LZW with a clear code often enough to need no table. */
function gif(width, height) {
	const head = Buffer.from([0x47, 0x49, 0x46, 0x38, 0x39, 0x61, width & 255, width >> 8, height & 255, height >> 8, 0x80, 0, 0, 255, 0, 0, 0, 0, 0]);
	const image = Buffer.from([0x2c, 0, 0, 0, 0, width & 255, width >> 8, height & 255, height >> 8, 0, 2]);
	const codes = [];
	for (let n = 0; n < width * height; n++) {
		if (n % 2 === 0) codes.push(4);
		codes.push(0);
	}
	codes.push(5);
	const bytes = [];
	let [bits, count] = [0, 0];
	for (const code of codes) {
		bits |= code << count;
		count += 3;
		while (count >= 8) {
			bytes.push(bits & 255);
			bits >>= 8;
			count -= 8;
		}
	}
	bytes.push(bits & 255);
	const blocks = [];
	for (let at = 0; at < bytes.length; at += 255) blocks.push(Math.min(255, bytes.length - at), ...bytes.slice(at, at + 255));
	return Buffer.concat([head, image, Buffer.from([...blocks, 0, 0x3b])]);
}

/** Adds an EXIF segment with the orientation of the camera. */
function oriented(jpeg, orientation) {
	const tiff = [0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0];
	const body = [0x45, 0x78, 0x69, 0x66, 0, 0, ...tiff];
	const segment = Buffer.from([0xff, 0xe1, 0, body.length + 2, ...body]);
	return Buffer.concat([jpeg.subarray(0, 2), segment, jpeg.subarray(2)]);
}

const smooth = (x, y) => [x & 255, y & 255, (x + y) & 255];
const noise = (x, y) => {
	let n = Math.imul(x + 1, 374761393) ^ Math.imul(y + 1, 668265263);
	n = Math.imul(n ^ (n >>> 13), 1274126177);
	return [n & 255, (n >>> 8) & 255, (n >>> 16) & 255];
};

/** Name, bytes. */
export function pictures(packageDir) {
	const photon = createRequire(join(packageDir, "package.json"))("@silvia-odwyer/photon-node");
	const sizes = [[1, 1], [7, 3], [100, 80], [640, 480], [1999, 20], [2000, 10], [2001, 10], [10, 2001], [2500, 1200], [4000, 30], [3, 5000]];
	const all = [];
	for (const [width, height] of sizes) {
		const size = `${width}x${height}`;
		const plain = png(width, height, smooth);
		all.push([`${size}.png`, plain]);
		const image = photon.PhotonImage.new_from_byteslice(new Uint8Array(plain));
		const jpeg = Buffer.from(image.get_bytes_jpeg(85));
		all.push([`${size}.jpg`, jpeg], [`${size}.webp`, Buffer.from(image.get_bytes_webp())], [`${size}.gif`, gif(width, height)]);
		image.free();
		if (width === 2001 || width === 100) for (let held = 1; held <= 8; held++) all.push([`${size}-held-${held}.jpg`, oriented(jpeg, held)]);
	}
	all.push(["noise-1500x1300.png", png(1500, 1300, noise)], ["noise-1300x700.png", png(1300, 700, noise)]);
	const [, small] = all[0];
	all.push(
		["named.txt", small], ["cut.png", small.subarray(0, small.length - 20)], ["head-only.png", small.subarray(0, 8)],
		["fake.jpg", Buffer.from("not a picture\n")], ["head-only.gif", Buffer.from("GIF89a")], ["riff.webp", Buffer.from("RIFF\0\0\0\0WAVE")],
	);
	return all;
}
