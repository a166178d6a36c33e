// The theme: the colors of the sign-in pages, with enough contrast in light and dark (WCAG 2.2 AA).
import {
  type CSSVariablesResolver,
  createTheme,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
} from "@mantine/core";

const water: MantineColorsTuple = [
  "#ecf7fb",
  "#d8ecf3",
  "#aed8e8",
  "#7cc8e2",
  "#55b3d3",
  "#359cc0",
  "#1d83a6",
  "#126c8b",
  "#0b5a75",
  "#08465b",
];

/**
 * Mantine's shades for the dark scheme, from the text color to the background, tinted like the server's sign-in pages.
 */
const dark: MantineColorsTuple = [
  "#d5dde4",
  "#bcc6ce",
  "#8795a1",
  "#6a7884",
  "#3f4b55",
  "#35414b",
  "#27323b",
  "#1a232b",
  "#151d24",
  "#0e151b",
];

export const theme = createTheme({
  primaryColor: "water",
  primaryShade: { light: 8, dark: 3 },
  autoContrast: true,
  colors: { water, dark },
  fontFamily: "system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  headings: { fontWeight: "650", sizes: { h1: { fontSize: "1.5rem" }, h2: { fontSize: "1.15rem" } } },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  // Mantine picks the text color of filled buttons by the light scheme's shade alone.
  variantColorResolver(input) {
    const colors = defaultVariantColorsResolver(input);
    return input.variant === "filled" ? { ...colors, color: `light-dark(${colors.color}, var(--on-filled))` } : colors;
  },
  components: {
    Checkbox: { defaultProps: { iconColor: "var(--on-filled)" } },
    Radio: { defaultProps: { iconColor: "var(--on-filled)" } },
    // Mantine renders a dialog's heading as <header>, which would count as a banner of the page.
    ModalHeader: { defaultProps: { role: "presentation" } },
    DrawerHeader: { defaultProps: { role: "presentation" } },
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Dismiss" } } },
  },
});

/** Replaces colors of Mantine, because its dimmed colors have too little contrast for small text. */
export const colorsOf: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#55636f",
    "--mantine-color-placeholder": "#5f6d79",
    "--mantine-color-error": "#a8261c",
    "--ground": "#f3f5f7",
    "--on-filled": "#ffffff",
    "--good": "#1f6b3d",
    "--mantine-color-anchor": "#0b5a75",
    // Mantine's own backgrounds of alerts are too saturated.
    "--mantine-color-red-light": "#fdeceb",
    "--mantine-color-yellow-light": "#fdf4d9",
    "--mantine-color-green-light": "#e7f6eb",
    "--mantine-color-red-light-color": "#a8261c",
    "--mantine-color-yellow-light-color": "#6a4a00",
    "--mantine-color-green-light-color": "#1a5c2b",
  },
  dark: {
    "--mantine-color-dimmed": "#a4b2be",
    "--mantine-color-placeholder": "#97a5b1",
    "--mantine-color-error": "#ff9d92",
    "--ground": "#0e151b",
    "--on-filled": "#0b1318",
    "--good": "#7fd39b",
    "--mantine-color-anchor": "#7cc8e2",
    "--mantine-color-red-light": "#3a2321",
    "--mantine-color-red-light-color": "#ffb4ab",
    "--mantine-color-yellow-light": "#352c17",
    "--mantine-color-yellow-light-color": "#f3cf7a",
    "--mantine-color-green-light": "#1b3225",
    "--mantine-color-green-light-color": "#8fdca6",
    "--mantine-color-gray-light": "#2a333b",
    "--mantine-color-gray-light-color": "#c3ced8",
  },
});

/**
 * The colors of chart series, in order. Each has a contrast of at least 3:1 to its background, and people with color
 * blindness can distinguish the colors, neighbors above all.
 */
const chartColors = {
  light: ["#1d83a6", "#c97a0a", "#1d4d33", "#7a3fcf", "#cf4a6a", "#6b3a10", "#2f2a86"],
  dark: ["#55b3d3", "#d0862c", "#52d68c", "#cdc8f5", "#cf4f8c", "#e8e04e", "#7c6af0"],
} as const;
const leftOver = { light: "#8793a0", dark: "#74808b" } as const;

/** Returns a distinct color for each index from 0, and grey for -1, which stands for the remaining groups. */
export function chartColor(scheme: "light" | "dark", index: number): string {
  if (index < 0) return leftOver[scheme];
  // After the listed colors, steps of the golden angle keep the hues apart.
  return (
    chartColors[scheme][index] ?? `oklch(${scheme === "dark" ? 0.76 : 0.52} 0.12 ${Math.round(index * 137.5) % 360})`
  );
}

const dashes = [[], [], [], [], [8, 4], [8, 4], [8, 4], [3, 3]] as const;

/** Returns the dash pattern of a line, in pixels, by the index of its color. */
export function chartDash(index: number): number[] {
  return [...(dashes[Math.max(0, index) % dashes.length] ?? [])];
}
