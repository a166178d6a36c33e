// The last part of the start: the session, then the pages.
import { QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, type ReactNode, StrictMode, startTransition } from "react";
import type { Root } from "react-dom/client";
import { queryClient } from "../api/queries.ts";
import { SessionProvider } from "../api/session.tsx";
import { Failure } from "../parts/page/failure.tsx";
import { SessionOver } from "../parts/page/session-over.tsx";
import { isAt, sections } from "../shell/navigation.ts";
import { Shell } from "../shell/shell.tsx";

/** Starts it as a transition: React draws it in slices of some milliseconds, and the browser answers between them. */
export function startIn(root: Root, Appearance: ComponentType<{ children: ReactNode }>): void {
  // Beside the session, without which it is not shown; where it fails, the page says so.
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
