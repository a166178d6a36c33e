// Removes a model server that was added here, after a question.
import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { TrashIcon } from "@primer/octicons-react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Upstream } from "../../api/types.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { count } from "../../parts/figures.ts";

export function RemoveUpstream({ upstream, close }: { upstream: Upstream; close(): void }) {
  const { name, models, running, has_api_key: hasKey, overrides_database: isHidden } = upstream;
  const [asking, { open, close: stop }] = useDisclosure();
  const remove = useChange(() => call("DELETE", `/v1/admin/upstreams/${encodeURIComponent(name)}`), {
    stale: ["/v1/admin/upstreams", "/v1/model-status", "/v1/models"],
    done() {
      stop();
      close();
      notifications.show({ message: `The upstream ${name} that was added here is removed.` });
    },
  });
  return (
    <>
      <Button
        variant="default"
        c="var(--mantine-color-error)"
        leftSection={<TrashIcon />}
        onClick={() => {
          remove.reset();
          open();
        }}
      >
        {isHidden ? "Remove the one added here" : "Remove"}
      </Button>
      <Confirm
        opened={asking}
        title={`Remove ${name}?`}
        action="Remove the upstream"
        busy={remove.isPending}
        error={remove.error}
        confirm={() => remove.mutate(undefined)}
        close={stop}
      >
        {isHidden
          ? "The one that was added here is removed. The one of headrace.yaml stays and works on as it does."
          : `Its ${models === 1 ? "model" : `${count(models)} models`} can no longer be called, unless another upstream has them.${
              running === 0 ? "" : ` What runs on it now, ${count(running)} of them, is finished.`
            }${hasKey ? " Its API key is deleted." : ""}`}
      </Confirm>
    </>
  );
}
