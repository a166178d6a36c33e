// One audit event in full, and as the API's JSON.
import { Code, Stack, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { ChevronDownIcon, ChevronRightIcon, FilterIcon } from "@primer/octicons-react";
import type { AuditEvent } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { CopyBlock } from "../../parts/secrets/copy.tsx";
import { Facts } from "../../parts/words/facts.tsx";
import { atSecond } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import type { AuditNames } from "./audit-names.ts";
import { textOf } from "./audit-text.ts";

interface EventViewProps {
  event: AuditEvent;
  names: AuditNames;
  /** Filters the list to events of this target. */
  only(target: string): void;
}

export function EventView({ event, names, only }: EventViewProps) {
  const { at, action, account_id, target_id, client_address, request_id } = event;
  const { who, did, more } = textOf(event, names);
  return (
    <Stack gap="lg">
      <div>
        <Text>
          <b>{who}</b> {did}
        </Text>
        {more !== "" && (
          <Note mt={4} style={{ overflowWrap: "anywhere" }}>
            {more}
          </Note>
        )}
      </div>
      <Facts
        facts={[
          ["When", atSecond(at)],
          ["Client address", client_address ?? "None: not requested by a client"],
          ["Account", account_id === null ? "None" : names.account(account_id)],
          ["Object", target_id === null ? "Unknown" : <Code key="target">{target_id}</Code>],
          ["Action", <Code key="action">{action}</Code>],
        ]}
      />
      {target_id !== null && (
        <div>
          <SmallButton leftSection={<FilterIcon size={14} />} onClick={() => only(target_id)}>
            Show this object's history
          </SmallButton>
          {target_id.startsWith("key_") && (
            <PlainLink href={`/settings/api-keys/${encodeURIComponent(target_id)}`} ml="sm">
              Open the key
            </PlainLink>
          )}
        </div>
      )}
      {request_id !== null && (
        <SmallNote style={{ overflowWrap: "anywhere" }}>In the server's log: {request_id}</SmallNote>
      )}
      <Raw event={event} />
    </Stack>
  );
}

function Raw({ event }: { event: AuditEvent }) {
  const [opened, { toggle }] = useDisclosure();
  const Mark = opened ? ChevronDownIcon : ChevronRightIcon;
  return (
    <div>
      <UnstyledButton onClick={toggle} aria-expanded={opened} fz="sm" py={4} mb="xs">
        <Mark /> The event as the API returns it
      </UnstyledButton>
      {opened && <CopyBlock value={JSON.stringify(event, null, 2)} label="Copy the event" />}
    </div>
  );
}
