// The form that renames a passkey.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { Passkey } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { maxPasskeyNameLength, passkeysPath } from "./passkey-support.ts";

export function RenamePasskey({ passkey, close }: { passkey: Passkey; close(): void }) {
  const [name, setName] = useState(passkey.name);
  const rename = useNotifiedChange(
    (wanted: string) =>
      call<Passkey>("PATCH", `${passkeysPath}/${encodeURIComponent(passkey.id)}`, { body: { name: wanted } }),
    {
      stale: [passkeysPath],
      said: (renamed) => `The passkey was renamed to “${renamed.name}”.`,
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
        maxLength={maxPasskeyNameLength}
        autoComplete="off"
        data-autofocus
      />
    </Form>
  );
}
