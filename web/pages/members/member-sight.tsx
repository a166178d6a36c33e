// The setting that lets a member see the whole account's usage and requests: a switch for owners, else read-only.
import { Switch } from "@mantine/core";
import { call } from "../../api/client.ts";
import type { Member } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { Failure } from "../../parts/page/failure.tsx";

interface MemberSightProps {
  member: Member;
  /** The reason why the setting may not be changed; undefined if it may. */
  why: string | undefined;
}

export function MemberSight({ member, why }: MemberSightProps) {
  const change = useNotifiedChange(
    (sees: boolean) => call<Member>("PATCH", `/v1/members/${member.id}`, { body: { sees_all_usage: sees } }),
    {
      stale: ["/v1/members"],
      said: ({ name, sees_all_usage: all }) =>
        `${name} can now see ${all ? "the usage of the account" : "only their own usage"}.`,
    },
  );
  return (
    <>
      <Switch
        label="Can view the account's usage and logs"
        description={why ?? "Without the content of requests. Takes effect immediately."}
        checked={change.isPending ? change.variables : member.sees_all_usage}
        disabled={why !== undefined || change.isPending}
        onChange={({ currentTarget }) => change.mutate(currentTarget.checked)}
      />
      {change.error && <Failure error={change.error} />}
    </>
  );
}
