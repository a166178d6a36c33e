// Starts the dashboard: the session first, then the pages.
import "./parts/came-back.ts";
import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import "./shell/shell.css";
import "./parts/parts.css";
import "./parts/answer/answer-text.css";
import "./parts/chart/chart.css";
import "./pages/models/models.css";
import "./pages/playground/playground.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/queries.ts";
import { SessionProvider } from "./api/session.tsx";
import { Failure } from "./parts/failure.tsx";
import { Shell } from "./shell/shell.tsx";
import { colorsOf, theme } from "./theme.ts";

const root = document.getElementById("root");
const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;
// Read by the library that keeps the page from scrolling under a dialog, for the style element that it adds.
if (nonce) Object.assign(globalThis, { __webpack_nonce__: nonce });

if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider
        theme={theme}
        cssVariablesResolver={colorsOf}
        defaultColorScheme="auto"
        {...(nonce ? { getStyleNonce: () => nonce } : {})}
      >
        <QueryClientProvider client={queryClient}>
          <Notifications position="bottom-right" />
          <SessionProvider
            waiting={<p className="boot">Loading…</p>}
            failed={(failure, retry) => (
              <main className="boot">
                <Failure error={failure} retry={retry} />
              </main>
            )}
          >
            <Shell />
          </SessionProvider>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
