// Shows images whose data have the declared format, and names the others.

import { element } from "./dom.js";
import { bytes } from "./format.js";
import type { Picture } from "./values.js";

const TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function picture({ data, type }: Picture, alternative = "picture"): HTMLElement {
  const packed = data.replace(/\s/g, "");
  const size = bytes(Math.floor((packed.length * 3) / 4));
  const broken = (): HTMLElement =>
    element("span", { class: "broken-picture" }, `${alternative} (${type || "no type"}, ${size}) cannot be shown`);
  if (!TYPES.has(type) || !/^[A-Za-z0-9+/]+={0,2}$/.test(packed)) return broken();
  const image = element("img", { class: "picture", alt: alternative, title: `${type}, ${size}: click for full size` });
  image.addEventListener("error", () => image.replaceWith(broken()));
  image.addEventListener("click", () => image.classList.toggle("full-size"));
  image.src = `data:${type};base64,${packed}`;
  return image;
}

/** The image in an address of a text: `null` unless the address contains the data. */
export function fromAddress(address: string): Picture | null {
  const match = /^data:(image\/[a-z]+);base64,(.*)$/s.exec(address);
  return match ? { type: match[1] ?? "", data: match[2] ?? "" } : null;
}
