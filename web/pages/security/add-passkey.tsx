// The form that lets the browser create a passkey, and names it.
import { TextInput } from "@mantine/core";
import type { PublicKeyCredentialCreationOptionsJSON } from "@simplewebauthn/browser";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { Passkey, PasskeyCreationOptions } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { Note } from "../../parts/words/note.tsx";
import { browserWords } from "./browser-words.ts";
import { maxPasskeyNameLength, passkeyFailure, passkeysPath } from "./passkey-support.ts";

export function AddPasskey({ known, close }: { known: readonly Passkey[]; close(): void }) {
  const [name, setName] = useState(() => freeName(browserWords(navigator.userAgent).name, known));
  const addition = useNotifiedChange(addPasskey, {
    stale: [passkeysPath],
    said: (passkey) => `The passkey “${passkey.name}” was added. You can now sign in with it.`,
    done: close,
  });
  const form = useFirstProblem(problemOf(addition.error, "name"));
  return (
    <Form
      ref={form}
      sending={addition}
      fields={["name"]}
      failed="No passkey was added"
      action="Continue"
      disabled={name.trim() === ""}
      submit={() => addition.mutate(name.trim())}
      cancel={close}
    >
      <TextInput
        label="Name"
        description="Helps you recognize the passkey, such as the name of the device"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(addition.error, "name")}
        maxLength={maxPasskeyNameLength}
        autoComplete="off"
        data-autofocus
      />
      <Note aria-live="polite">
        {addition.isPending
          ? "Follow the instructions of your browser or device."
          : "Your browser then asks where to save the passkey, and for your fingerprint, face or code."}
      </Note>
    </Form>
  );
}

/** Creates and stores a passkey. Rejects with ApiFailure, also for errors of the browser. */
async function addPasskey(name: string): Promise<Passkey> {
  try {
    const { startRegistration } = await import("@simplewebauthn/browser");
    const options = await call<PasskeyCreationOptions>("POST", `${passkeysPath}/options`);
    const response = await startRegistration({
      // The cast is safe, because the server creates the options for exactly this call.
      optionsJSON: options as unknown as PublicKeyCredentialCreationOptionsJSON,
    });
    return await call<Passkey>("POST", passkeysPath, { body: { name, response } });
  } catch (error) {
    throw passkeyFailure(error);
  }
}

/** Adds a number if the browser's name is already taken by another passkey. */
function freeName(name: string, known: readonly Passkey[]): string {
  const isTaken = (wanted: string) => known.some((passkey) => passkey.name === wanted);
  let free = name;
  for (let number = 2; isTaken(free); number++) free = `${name} ${number}`;
  return free;
}
