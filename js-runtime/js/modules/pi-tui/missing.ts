// Names of pi-tui that wait for the full-screen terminal.
import { missing } from "pi:missing.ts";

const MODULE = "@mariozechner/pi-tui";

export const CombinedAutocompleteProvider = missing("CombinedAutocompleteProvider", MODULE);
export const Editor = missing("Editor", MODULE);
export const Image = missing("Image", MODULE);
export const Markdown = missing("Markdown", MODULE);
export const ProcessTerminal = missing("ProcessTerminal", MODULE);
export const StdinBuffer = missing("StdinBuffer", MODULE);
export const TUI = missing("TUI", MODULE);
export const allocateImageId = missing("allocateImageId", MODULE);
export const calculateImageRows = missing("calculateImageRows", MODULE);
export const deleteAllKittyImages = missing("deleteAllKittyImages", MODULE);
export const deleteKittyImage = missing("deleteKittyImage", MODULE);
export const detectCapabilities = missing("detectCapabilities", MODULE);
export const encodeITerm2 = missing("encodeITerm2", MODULE);
export const encodeKitty = missing("encodeKitty", MODULE);
export const getCapabilities = missing("getCapabilities", MODULE);
export const getCellDimensions = missing("getCellDimensions", MODULE);
export const getGifDimensions = missing("getGifDimensions", MODULE);
export const getImageDimensions = missing("getImageDimensions", MODULE);
export const getJpegDimensions = missing("getJpegDimensions", MODULE);
export const getPngDimensions = missing("getPngDimensions", MODULE);
export const getWebpDimensions = missing("getWebpDimensions", MODULE);
export const imageFallback = missing("imageFallback", MODULE);
export const renderImage = missing("renderImage", MODULE);
export const resetCapabilitiesCache = missing("resetCapabilitiesCache", MODULE);
export const setCapabilities = missing("setCapabilities", MODULE);
export const setCellDimensions = missing("setCellDimensions", MODULE);
