// Deletes an app after a confirmation, which says what ends with the app and asks for its name.
import { List, Text } from "@mantine/core";
import { TrashIcon } from "@primer/octicons-react";
import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { call } from "../../api/client.ts";
import type { App } from "../../api/types.ts";
import { Confirm } from "../../parts/editing/confirm.tsx";
import { useQuestion } from "../../parts/editing/question.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";

export function DeleteApp({ app }: { app: App }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const deletion = useQuestion(() => call("DELETE", `/v1/apps/${app.id}`), {
    stale: ["/v1/authorizations"],
    leave: () => navigate("/apps"),
    said: () => `The app “${app.name}” was deleted.`,
    done: () => void client.resetQueries({ queryKey: ["/v1/apps"] }),
  });
  return (
    <>
      <PlainButton leftSection={<TrashIcon />} onClick={() => deletion.ask()}>
        Delete
      </PlainButton>
      <Confirm {...deletion.dialog} title={`Delete “${app.name}”?`} action="Delete app" typed={app.name}>
        <Text size="sm" mb={4}>
          This ends immediately and permanently:
        </Text>
        <List size="sm" mb="xs">
          <List.Item>
            its client id{app.secrets.length > 0 && " and secrets"}: people can no longer sign in to this app
          </List.Item>
          <List.Item>all access that people gave this app, in every account: its access tokens are refused</List.Item>
        </List>
        <Text size="sm">
          The past usage of this app stays in the reports. If you register the same settings again, you get a new app.
        </Text>
      </Confirm>
    </>
  );
}
