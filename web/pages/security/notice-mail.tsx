// The setting for notifications by mail about quotas, keys, failing requests, upstreams and nodes.
import { Switch } from "@mantine/core";
import { call } from "../../api/client.ts";
import { useRead } from "../../api/queries.ts";
import type { NoticeSettings } from "../../api/types.ts";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Section } from "../../parts/page/section.tsx";

const path = "/v1/session/notices";

export function NoticeMail() {
  const { data, error } = useRead<NoticeSettings>(path);
  const change = useNotifiedChange((mail: boolean) => call<NoticeSettings>("PUT", path, { body: { mail } }), {
    stale: [path],
    said: ({ mail }) => (mail ? "Notifications by mail are on." : "Notifications by mail are off."),
  });
  const failure = change.error ?? error;
  return (
    <Section
      title="Mail notifications"
      about="Owners and admins are notified about quotas, keys and failing requests. Operators are notified about upstreams and nodes."
    >
      <Switch
        label="Notify me by mail"
        description={data?.mail_is_sent === false ? "This server does not send mail." : "At most 30 mails an hour."}
        checked={change.isPending ? change.variables : (data?.mail ?? true)}
        disabled={!data}
        onChange={(event) => change.mutate(event.currentTarget.checked)}
      />
      {failure && <Failure error={failure} />}
    </Section>
  );
}
