// The rotation schedule of one key, or of all keys of the account, with the form that sets it.
import { Group, Modal, Text } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { KeyRotation, KeyRotationRequest, RotationOfKey } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";
import { at, counted, span } from "../../parts/words/figures.ts";

type Schedule = KeyRotation & Partial<Pick<RotationOfKey, "set_for" | "next_at" | "is_due">>;

interface RotationScheduleProps {
  path: `/v1/keys/${string}/rotation` | "/v1/account/key-rotation";
  about: string;
  /** Opens the dialog that fetches the new key of a due rotation. */
  rotate?: () => void;
}

export function RotationSchedule({ path, about, rotate }: RotationScheduleProps) {
  const { data, error } = useRead<Schedule>(path);
  const [opened, setOpened] = useState(false);
  const close = () => setOpened(false);
  if (!data) return error && <Failure error={error} />;
  return (
    <Section title="Scheduled rotation" about={about}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{textOf(data, path === "/v1/account/key-rotation")}</Text>
        {data.is_due && rotate && <SmallButton onClick={rotate}>Get the new key</SmallButton>}
        <SmallButton onClick={() => setOpened(true)} aria-label="Change the rotation schedule">
          Change
        </SmallButton>
      </Group>
      <Modal opened={opened} onClose={close} title="Scheduled rotation">
        <ScheduleForm {...{ path, schedule: data, close }} />
      </Modal>
    </Section>
  );
}

function textOf(schedule: Schedule, isOfAccount: boolean): string {
  const { every_days: days, overlap_seconds: overlap, set_for: from, next_at: next, is_due: isDue } = schedule;
  const due = isDue ? "The rotation is due: get the new key before this key ends. " : "";
  if (days === null) return `${due}${isOfAccount ? "The account" : "This key"} has no rotation schedule.`;
  const who = isOfAccount ? "All keys of the account are" : "This key is";
  const rule = `${who} rotated every ${counted(days, "day")}. The old key works for ${span(overlap ?? 0)} more.`;
  const whose = from === "account" ? " The schedule of the account applies." : "";
  return `${due}${rule}${whose}${next == null ? "" : ` Next rotation: ${at(next)}.`}`;
}

const fields = ["every_days", "overlap_seconds"] as const;
const hourSeconds = 3_600;
const usualOverlapSeconds = 86_400;

function ScheduleForm({ path, schedule, close }: { path: string; schedule: Schedule; close(): void }) {
  const [days, setDays] = useState<TypedNumber>(schedule.every_days ?? "");
  const [overlap, setOverlap] = useState<TypedNumber>((schedule.overlap_seconds ?? usualOverlapSeconds) / hourSeconds);
  const saving = useNotifiedChange(
    (body: KeyRotationRequest | undefined) => call<Schedule>(body ? "PUT" : "DELETE", path, body ? { body } : {}),
    { stale: [path, "/v1/keys"], said: () => "The rotation schedule was saved.", done: close },
  );
  const save = () => {
    const everyDays = numberOf(days);
    const overlapSeconds = numberOf(overlap) === null ? null : (numberOf(overlap) ?? 0) * hourSeconds;
    saving.mutate(everyDays === null ? undefined : { every_days: everyDays, overlap_seconds: overlapSeconds });
  };
  return (
    <Form sending={saving} fields={fields} action="Save" submit={save} cancel={close} noValidate>
      <Text size="sm">
        When a rotation is due, owners and admins are notified, and the old key ends after the overlap. The new key is
        shown once to whoever fetches it here.
      </Text>
      <WholeNumber
        label="Rotate every, days"
        description="Leave empty for no schedule"
        value={days}
        onChange={setDays}
        min={1}
        error={problemOf(saving.error, "every_days")}
        data-autofocus
      />
      <WholeNumber
        label="Overlap, hours"
        description="The old key still works for this long"
        value={overlap}
        onChange={setOverlap}
        min={1}
        error={problemOf(saving.error, "overlap_seconds")}
      />
    </Form>
  );
}
