// A page whose file is loaded when it is first opened.
import { Loader } from "@mantine/core";
import { type ComponentType, useEffect, useState } from "react";

export type LoadPage = () => Promise<ComponentType>;

const loaded = new Map<LoadPage, ComponentType>();

/**
 * Shows the page as soon as it is there, at once if it was loaded before. `React.lazy` does not: what replaces a fallback of
 * Suspense is held back for 300 ms. A file that cannot be loaded is an error of the page.
 */
export function LaterPage({ load }: { load: LoadPage }) {
  const [Page, setPage] = useState(() => loaded.get(load));
  const [failure, setFailure] = useState<{ error: unknown }>();
  useEffect(() => {
    if (loaded.has(load)) return;
    load().then(
      (found) => {
        loaded.set(load, found);
        setPage(() => found);
      },
      (error: unknown) => setFailure({ error }),
    );
  }, [load]);
  if (failure) throw failure.error;
  return Page ? <Page /> : <Loader className="late" aria-label="Loading the page" />;
}
