// Asks for confirmation before a member is removed or leaves, and says what ends then.
import { List, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useLast } from "../../parts/editing/use-last.ts";

interface RemoveMemberProps {
  /** The member to remove; undefined while the dialog is closed. */
  member: { id: string; name: string } | undefined;
  isSelf: boolean;
  close(): void;
}

export function RemoveMember({ member, isSelf, close }: RemoveMemberProps) {
  const { session } = useSession();
  const shown = useLast(member);
  const { name: account } = session.account;
  const removal = useChange((id: string) => call("DELETE", `/v1/members/${id}`), {
    // A user who left may no longer read these lists.
    stale: isSelf ? [] : ["/v1/members", "/v1/invitations"],
    done() {
      if (isSelf) return leaveAccount(session.accounts.filter(({ id }) => id !== session.account.id));
      notifications.show({ message: `${shown?.name ?? ""} is no longer a member of ${account}.` });
      return close();
    },
  });
  const whose = isSelf ? "your" : "their";
  const who = isSelf ? "you" : "they";
  return (
    <Confirm
      opened={member !== undefined}
      title={isSelf ? `Leave ${account}?` : `Remove ${shown?.name ?? ""} from ${account}?`}
      action={isSelf ? "Leave the account" : "Remove from the account"}
      busy={removal.isPending}
      error={removal.error}
      confirm={() => member && removal.mutate(member.id)}
      close={() => {
        removal.reset();
        close();
      }}
    >
      <Text size="sm" mb={4}>
        This ends immediately for this account:
      </Text>
      <List size="sm" mb="xs">
        <List.Item>API keys that {who} created as a member</List.Item>
        <List.Item>{whose} command line logins</List.Item>
        <List.Item>access that {who} gave to apps</List.Item>
        <List.Item>invitations that {who} sent</List.Item>
      </List>
      <Text size="sm">
        Keys that owners and admins created belong to the account and stay. Past usage stays in the reports.{" "}
        {isSelf ? "You need a new invitation to return." : "Access to other accounts is not affected."}
      </Text>
    </Confirm>
  );
}

/** Switches to another account. If the user has no other account, the server's own page explains the next step. */
async function leaveAccount(others: readonly { id: string; status: string }[]): Promise<void> {
  const next = others.find(({ status }) => status === "active");
  if (next) {
    await call("PATCH", "/v1/session", {
      body: { account_id: next.id },
      headers: { "headrace-account": next.id },
    }).catch(() => undefined);
  }
  window.location.assign(next ? "/" : "/settings");
}
