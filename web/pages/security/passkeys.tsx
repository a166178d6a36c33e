// The user's passkeys: add, rename, remove.
import { Anchor, Group, Modal, Skeleton, Text } from "@mantine/core";
import { PasskeyFillIcon, PlusIcon } from "@primer/octicons-react";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { Passkey, PasskeyList } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { useLast } from "../../parts/editing/use-last.ts";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { day } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { AddPasskey } from "./add-passkey.tsx";
import { Lines, Pictured } from "./lines.tsx";
import { passkeySupport, passkeysPath } from "./passkey-support.ts";
import { RenamePasskey } from "./rename-passkey.tsx";

export function Passkeys() {
  const { data, error, isPending, refetch } = useRead<PasskeyList>(passkeysPath);
  const [adding, setAdding] = useState(false);
  const [renaming, setRenaming] = useState<Passkey>();
  const renamed = useLast(renaming);
  const support = passkeySupport();
  const removal = useQuestion(({ id }: Passkey) => call("DELETE", `${passkeysPath}/${encodeURIComponent(id)}`), {
    stale: [passkeysPath],
    said: (_answer, { name }) => `The passkey “${name}” was removed.`,
  });
  const passkeys = data?.data ?? [];
  return (
    <Section
      title="Passkeys"
      about="With a passkey you sign in with your fingerprint, face or device code. A passkey cannot be guessed or stolen by a fake page."
      actions={
        support.kind === "here" && (
          <PlainButton leftSection={<PlusIcon />} onClick={() => setAdding(true)}>
            Add a passkey
          </PlainButton>
        )
      }
    >
      {isPending && <Skeleton height={44} role="status" aria-label="Loading the passkeys" />}
      {error && <Failure error={error} retry={refetch} />}
      {data && passkeys.length === 0 && <Text size="sm">You have no passkeys yet.</Text>}
      {passkeys.length > 0 && (
        <Lines items={passkeys}>
          {(passkey) => (
            <PasskeyLine passkey={passkey} rename={() => setRenaming(passkey)} remove={() => removal.ask(passkey)} />
          )}
        </Lines>
      )}
      {!isPending && support.kind === "none" && (
        <Note>
          {support.why}{" "}
          {support.elsewhere !== undefined && (
            <Anchor href={support.elsewhere} inherit underline="always">
              Open this page with the server's name
            </Anchor>
          )}
          {support.elsewhere !== undefined && ", and sign in there."}
        </Note>
      )}
      <Modal opened={adding} onClose={() => setAdding(false)} title="Add a passkey">
        <AddPasskey known={passkeys} close={() => setAdding(false)} />
      </Modal>
      <Modal opened={renaming !== undefined} onClose={() => setRenaming(undefined)} title="Rename the passkey">
        {renamed && <RenamePasskey passkey={renamed} close={() => setRenaming(undefined)} />}
      </Modal>
      <Confirm {...removal.dialog} title={`Remove “${removal.about?.name ?? ""}”?`} action="Remove passkey">
        This passkey can no longer be used to sign in. Browsers that are signed in stay signed in. If you lost the
        device, also sign out everywhere else. Without another passkey, you sign in with your password or single
        sign-on.
      </Confirm>
    </Section>
  );
}

function PasskeyLine({ passkey, rename, remove }: { passkey: Passkey; rename(): void; remove(): void }) {
  const { name, backed_up: isBackedUp, created_at: created, last_used_at: used } = passkey;
  return (
    <Group justify="space-between" gap="sm">
      <Group gap="sm" wrap="nowrap" align="start" miw={0} flex="1 1 14rem">
        <Pictured icon={<PasskeyFillIcon size={20} />}>
          <Text size="sm" fw={600}>
            {name}
          </Text>
          <SmallNote>
            {isBackedUp ? "In a password manager" : "On one device only"} · added {day(created)} ·{" "}
            {used === null ? (
              "not used yet"
            ) : (
              <>
                used <Ago seconds={used} />
              </>
            )}
          </SmallNote>
        </Pictured>
      </Group>
      <Group gap="xs">
        <SmallButton onClick={rename} aria-label={`Rename ${name}`}>
          Rename
        </SmallButton>
        <SmallButton onClick={remove} aria-label={`Remove ${name}`}>
          Remove
        </SmallButton>
      </Group>
    </Group>
  );
}
