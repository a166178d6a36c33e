// The dialog that gives a passkey another name.
import { Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { Passkey } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useToldChange } from "../../parts/editing/told-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { longestPasskeyName, passkeysPath } from "./passkey-support.ts";

interface RenamePasskeyProps {
  /** Undefined while it is closed. */
  passkey: Passkey | undefined;
  close(): void;
}

export function RenamePasskey({ passkey, close }: RenamePasskeyProps) {
  const shown = useLast(passkey);
  return (
    <Modal opened={passkey !== undefined} onClose={close} title="Rename the passkey">
      {shown && <PasskeyForm passkey={shown} close={close} />}
    </Modal>
  );
}

function PasskeyForm({ passkey, close }: { passkey: Passkey; close(): void }) {
  const [name, setName] = useState(passkey.name);
  const rename = useToldChange(
    (wanted: string) =>
      call<Passkey>("PATCH", `${passkeysPath}/${encodeURIComponent(passkey.id)}`, { body: { name: wanted } }),
    {
      stale: [passkeysPath],
      said: (renamed) => `The passkey is called “${renamed.name}” now.`,
      done: close,
    },
  );
  const form = useFirstProblem(problemOf(rename.error, "name"));
  return (
    <Form
      ref={form}
      sending={rename}
      fields={["name"]}
      action="Rename"
      disabled={name.trim() === ""}
      submit={() => rename.mutate(name.trim())}
      cancel={close}
    >
      <TextInput
        label="Name"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(rename.error, "name")}
        maxLength={longestPasskeyName}
        autoComplete="off"
        data-autofocus
      />
    </Form>
  );
}
