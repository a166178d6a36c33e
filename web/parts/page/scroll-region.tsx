// A scrollable region with a name, which the keyboard can reach.
import type { ComponentPropsWithRef } from "react";

interface ScrollRegionProps extends Omit<ComponentPropsWithRef<"section">, "aria-label" | "tabIndex"> {
  /** The name for screen readers. */
  label: string;
}

export function ScrollRegion({ label, ...section }: ScrollRegionProps) {
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard (WCAG 2.1.1)
  return <section {...section} tabIndex={0} aria-label={label} />;
}
