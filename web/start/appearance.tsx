// The second part of the startup: the component library with our theme, and the notifications.
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import type { ReactNode } from "react";
import { colorsOf, theme } from "../theme.ts";

export function Appearance({ children }: { children: ReactNode }) {
  const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;
  // Read by the library that locks scrolling under a dialog, as the CSP nonce of its style element.
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
