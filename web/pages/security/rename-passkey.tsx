// The dialog that gives a passkey another name.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Passkey } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { longestPasskeyName, passkeysPath } from "./passkey-support.ts";

interface RenamePasskeyProps {
  /** Undefined: closed. */
  passkey: Passkey | undefined;
  close(): void;
}

export function RenamePasskey({ passkey, close }: RenamePasskeyProps) {
  const shown = useLast(passkey);
  return (
    <Modal opened={passkey !== undefined} onClose={close} title="Rename the passkey">
      {shown && <Form passkey={shown} close={close} />}
    </Modal>
  );
}

function Form({ passkey, close }: { passkey: Passkey; close(): void }) {
  const [name, setName] = useState(passkey.name);
  const rename = useChange(
    (wanted: string) =>
      call<Passkey>("PATCH", `${passkeysPath}/${encodeURIComponent(passkey.id)}`, { body: { name: wanted } }),
    {
      stale: [passkeysPath],
      done(renamed) {
        notifications.show({ message: `The passkey is called “${renamed.name}” now.` });
        close();
      },
    },
  );
  const form = useFirstProblem(problemOf(rename.error, "name"));
  const problem = problemBeside(rename.error, ["name"]);
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        rename.mutate(name.trim());
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={problemOf(rename.error, "name")}
          maxLength={longestPasskeyName}
          autoComplete="off"
          data-autofocus
        />
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={rename.isPending} disabled={name.trim() === ""}>
            Rename
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
