// One model server in a drawer: how it does, what may be done about it; or a new one to be added.
import type { Upstream } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { useLast } from "../../parts/editing/use-last.ts";
import { AddUpstream } from "./add-upstream.tsx";
import { UpstreamView } from "./upstream-view.tsx";

interface UpstreamDrawerProps {
  /** Undefined while it is closed. */
  upstream: Upstream | "new" | undefined;
  /** Names that there are. */
  taken: readonly string[];
  close(): void;
  show(name: string): void;
}

export function UpstreamDrawer({ upstream, taken, close, show }: UpstreamDrawerProps) {
  const shown = useLast(upstream);
  return (
    <FormDrawer
      opened={upstream !== undefined}
      close={close}
      size="lg"
      title={shown === "new" ? "Add upstream" : "Upstream"}
    >
      {shown === "new" && <AddUpstream taken={taken} close={close} done={({ name }) => show(name)} />}
      {shown !== undefined && shown !== "new" && <UpstreamView key={shown.name} upstream={shown} close={close} />}
    </FormDrawer>
  );
}
