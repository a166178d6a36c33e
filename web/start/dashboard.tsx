// The last part of the startup: the session, then the pages.
import { QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, type ReactNode, StrictMode, startTransition } from "react";
import type { Root } from "react-dom/client";
import { queryClient } from "../api/queries.ts";
import { SessionProvider } from "../api/session.tsx";
import { Failure } from "../parts/page/failure.tsx";
import { SessionOver } from "../parts/page/session-over.tsx";
import { isAt, sections } from "../shell/navigation.ts";
import { Shell } from "../shell/shell.tsx";

/** Renders as a transition: React works in slices of some milliseconds, and the browser stays responsive. */
export function startIn(root: Root, Appearance: ComponentType<{ children: ReactNode }>): void {
  // The page's file loads in parallel with the session. If it fails, the page itself shows the error.
  const page = sections.flatMap(({ pages }) => pages).find((one) => isAt(one, window.location.pathname));
  page?.load().catch(() => undefined);
  startTransition(() =>
    root.render(
      <StrictMode>
        <Appearance>
          <QueryClientProvider client={queryClient}>
            <SessionProvider
              waiting={<p className="boot">Loading…</p>}
              failed={(failure, retry) => (
                <main className="boot">
                  <Failure error={failure} retry={retry} />
                </main>
              )}
              over={(over) => <SessionOver {...over} />}
            >
              <Shell />
            </SessionProvider>
          </QueryClientProvider>
        </Appearance>
      </StrictMode>,
    ),
  );
}
