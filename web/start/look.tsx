// The second part of the start: the component library with our look, and the notices that it shows.
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import type { ReactNode } from "react";
import { colorsOf, theme } from "../theme.ts";

export function Appearance({ children }: { children: ReactNode }) {
  const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;
  // Read by the library that keeps the page from scrolling under a dialog, for the style element that it adds.
  if (nonce) Object.assign(globalThis, { __webpack_nonce__: nonce });
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={colorsOf}
      defaultColorScheme="auto"
      {...(nonce ? { getStyleNonce: () => nonce } : {})}
    >
      <Notifications position="bottom-right" />
      {children}
    </MantineProvider>
  );
}
