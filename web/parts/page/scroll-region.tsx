// A part of a page that scrolls by itself: named, and within reach of the keyboard.
import type { ComponentPropsWithRef } from "react";

interface ScrollRegionProps extends Omit<ComponentPropsWithRef<"section">, "aria-label" | "tabIndex"> {
  /** What is in it, for who hears it. */
  label: string;
}

export function ScrollRegion({ label, ...section }: ScrollRegionProps) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard (WCAG 2.1.1)
  return <section {...section} tabIndex={0} aria-label={label} />;
}
