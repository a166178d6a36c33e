// The endpoints with which a person chooses email notifications.
import type { NotificationMutes } from "../../../domain/notifications/mutes.ts";
import { noticeSettingsShape, updateNoticeSettingsRequest } from "../../../wire/webhooks.ts";
import type { PersonRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { managingEndpoints, peopleEndpoints } from "./people-endpoint.ts";

export interface NotificationRouteDeps extends EndpointDeps {
  notificationMutes: NotificationMutes;
  /** True if this server sends mail. */
  areNotificationsMailed: boolean;
}

const reading = peopleEndpoints<NotificationRouteDeps>();
const managing = managingEndpoints<NotificationRouteDeps>();

export function notificationRoutes(deps: NotificationRouteDeps): PersonRoute[] {
  return [retrieve(deps), update(deps)];
}

const retrieve = reading("GET", "/v1/session/notices", {
  operationId: "getNoticeSettings",
  summary: "Retrieve your mail notification setting",
  description:
    "Owners and admins are notified about quotas, keys and failing requests. Operators are notified about upstreams and nodes.",
  response: { description: "The setting.", json: noticeSettingsShape },
  async answer({ deps, principal }) {
    return settingsOf(!(await deps.notificationMutes.isMuted(principal.person.id)), deps);
  },
});

const update = managing("PUT", "/v1/session/notices", {
  operationId: "updateNoticeSettings",
  summary: "Turn mail notifications on or off",
  requestBody: updateNoticeSettingsRequest,
  example: { mail: false },
  response: { description: "The setting.", json: noticeSettingsShape },
  async answer({ deps, principal, body: { mail } }) {
    await deps.notificationMutes.setMuted(principal.person.id, !mail);
    return settingsOf(mail, deps);
  },
});

function settingsOf(mail: boolean, { areNotificationsMailed }: NotificationRouteDeps) {
  return { object: "notice_settings" as const, mail, mail_is_sent: areNotificationsMailed };
}
