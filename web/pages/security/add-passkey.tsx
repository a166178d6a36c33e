// The dialog that has the browser make a passkey and gives it a name.
import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import type { PublicKeyCredentialCreationOptionsJSON } from "@simplewebauthn/browser";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Passkey, PasskeyCreationOptions } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { browserWords } from "./browser-words.ts";
import { longestPasskeyName, passkeyFailure, passkeysPath } from "./passkey-support.ts";

interface AddPasskeyProps {
  opened: boolean;
  known: readonly Passkey[];
  close(): void;
}

export function AddPasskey({ opened, known, close }: AddPasskeyProps) {
  return (
    <Modal opened={opened} onClose={close} title="Add a passkey">
      <Form known={known} close={close} />
    </Modal>
  );
}

function Form({ known, close }: Omit<AddPasskeyProps, "opened">) {
  const [name, setName] = useState(() => freeName(browserWords(navigator.userAgent).name, known));
  const addition = useChange(addPasskey, {
    stale: [passkeysPath],
    done(passkey) {
      notifications.show({ message: `The passkey “${passkey.name}” is added. You can sign in with it from now on.` });
      close();
    },
  });
  const form = useFirstProblem(problemOf(addition.error, "name"));
  const problem = problemBeside(addition.error, ["name"]);
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        addition.mutate(name.trim());
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          description="So that you know it again, such as the device it is on"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={problemOf(addition.error, "name")}
          maxLength={longestPasskeyName}
          autoComplete="off"
          data-autofocus
        />
        <Text size="sm" c="dimmed" aria-live="polite">
          {addition.isPending
            ? "Follow what your browser or device asks."
            : "Your browser asks next where to keep it, and for your fingerprint, face or code."}
        </Text>
        {problem && <Failure error={problem} title="No passkey was added" />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={addition.isPending} disabled={name.trim() === ""}>
            Go on
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Rejects with ApiFailure, also for what the browser refuses. */
async function addPasskey(name: string): Promise<Passkey> {
  try {
    const { startRegistration } = await import("@simplewebauthn/browser");
    const options = await call<PasskeyCreationOptions>("POST", `${passkeysPath}/options`);
    const response = await startRegistration({
      // The server made it for exactly this.
      optionsJSON: options as unknown as PublicKeyCredentialCreationOptionsJSON,
    });
    return await call<Passkey>("POST", passkeysPath, { body: { name, response } });
  } catch (error) {
    throw passkeyFailure(error);
  }
}

/** Two of one browser are told apart by a number. */
function freeName(name: string, known: readonly Passkey[]): string {
  const isTaken = (wanted: string) => known.some((passkey) => passkey.name === wanted);
  let free = name;
  for (let number = 2; isTaken(free); number++) free = `${name} ${number}`;
  return free;
}
