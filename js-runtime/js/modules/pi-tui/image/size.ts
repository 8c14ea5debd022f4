// The size of a picture, read from the head of its file.

export interface ImageDimensions {
  widthPx: number;
  heightPx: number;
}

/** A view of the file, or nothing if it is no base64 or shorter than `least`. */
function decode(base64: string, least: number): DataView | undefined {
  let binary: string;
  try {
    binary = atob(base64.replace(/[^A-Za-z0-9+/]/g, ""));
  } catch {
    return undefined;
  }
  if (binary.length < least) return undefined;
  return new DataView(Uint8Array.from(binary, (c) => c.charCodeAt(0)).buffer);
}

/** All formats but JPEG have the size at the start, and decoding a whole image takes long. */
const head = (base64: string, least: number) => decode(base64.slice(0, 64), least);

function ascii(view: DataView, from: number, length: number): string {
  return String.fromCharCode(...new Uint8Array(view.buffer, from, length));
}

const size = (widthPx: number, heightPx: number): ImageDimensions => ({ widthPx, heightPx });

export function getPngDimensions(base64Data: string): ImageDimensions | null {
  const view = head(base64Data, 24);
  if (!view || view.getUint32(0) !== 0x89504e47) return null;
  return size(view.getUint32(16), view.getUint32(20));
}

export function getGifDimensions(base64Data: string): ImageDimensions | null {
  const view = head(base64Data, 10);
  if (!view || !/^GIF8[79]a$/.test(ascii(view, 0, 6))) return null;
  return size(view.getUint16(6, true), view.getUint16(8, true));
}

export function getJpegDimensions(base64Data: string): ImageDimensions | null {
  const view = decode(base64Data, 2);
  if (!view || view.getUint16(0) !== 0xffd8) return null;
  let at = 2;
  while (at < view.byteLength - 9) {
    if (view.getUint8(at) !== 0xff) {
      at += 1;
      continue;
    }
    const marker = view.getUint8(at + 1);
    if (marker >= 0xc0 && marker <= 0xc2) return size(view.getUint16(at + 7), view.getUint16(at + 5));
    const length = view.getUint16(at + 2);
    if (length < 2) return null;
    at += 2 + length;
  }
  return null;
}

export function getWebpDimensions(base64Data: string): ImageDimensions | null {
  const view = head(base64Data, 30);
  if (!view || ascii(view, 0, 4) !== "RIFF" || ascii(view, 8, 4) !== "WEBP") return null;
  const little24 = (at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
  switch (ascii(view, 12, 4)) {
    case "VP8 ":
      return size(view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff);
    case "VP8L": {
      const bits = view.getUint32(21, true);
      return size((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1);
    }
    case "VP8X":
      return size(little24(24) + 1, little24(27) + 1);
    default:
      return null;
  }
}

const READERS: Readonly<Record<string, (base64Data: string) => ImageDimensions | null>> = {
  "image/png": getPngDimensions,
  "image/jpeg": getJpegDimensions,
  "image/gif": getGifDimensions,
  "image/webp": getWebpDimensions,
};

export function getImageDimensions(base64Data: string, mimeType: string): ImageDimensions | null {
  return Object.hasOwn(READERS, mimeType) ? READERS[mimeType](base64Data) : null;
}
