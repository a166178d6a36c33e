// One model in a drawer for operators: its settings and actions; or the form for a new model.
import { useState } from "react";
import type { ManagedModel } from "../../api/types.ts";
import { FormDrawer } from "../../parts/editing/form-drawer.tsx";
import { EditModel } from "./edit-model.tsx";
import { ModelView } from "./model-view.tsx";

interface ModelDrawerProps {
  /** The model to show; undefined while the drawer is closed. */
  model: ManagedModel | "new" | undefined;
  /** The ids of existing models. */
  ids: readonly string[];
  close(): void;
  show(id: string): void;
}

export function ModelDrawer({ model, ids, close, show }: ModelDrawerProps) {
  return (
    <FormDrawer of={model} close={close} size="lg" title={(shown) => (shown === "new" ? "Add model" : "Model")}>
      {(shown) =>
        shown === "new" ? (
          <EditModel model={undefined} ids={ids} done={(saved) => (saved ? show(saved.id) : close())} />
        ) : (
          <OneModel key={shown.id} model={shown} ids={ids} close={close} />
        )
      }
    </FormDrawer>
  );
}

function OneModel({ model, ids, close }: { model: ManagedModel; ids: readonly string[]; close(): void }) {
  const [editing, setEditing] = useState(false);
  if (editing) return <EditModel model={model} ids={ids} done={() => setEditing(false)} />;
  return <ModelView model={model} ids={ids} close={close} edit={() => setEditing(true)} />;
}
