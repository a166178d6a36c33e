// Composes notifications: detects, stores and delivers events.
import { LimitRequests } from "../accounts/limit-requests.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Config } from "../config/config.ts";
import type { Observer } from "../domain/usage/observer.ts";
import { type EgressRules, permittedNetworks, resolveBySystem } from "../egress/addresses.ts";
import { SmtpMailer } from "../mail/smtp-mailer.ts";
import { Deliverer } from "../notifications/delivery/deliverer.ts";
import type { PostOptions } from "../notifications/delivery/post.ts";
import { Webhooks } from "../notifications/manage-webhooks.ts";
import { Notifications, type Notifier } from "../notifications/notifications.ts";
import { ErrorWatch } from "../notifications/watch/error-watch.ts";
import { IncidentWatch } from "../notifications/watch/incident-watch.ts";
import { type EndingModel, KeyWatch } from "../notifications/watch/key-watch.ts";
import { type OutageSources, Outages } from "../notifications/watch/outages.ts";
import { QuotaWatch } from "../notifications/watch/quota-watch.ts";
import type { Replicas } from "../policy/records/replicas.ts";
import type { Database } from "../storage/sql/database.ts";
import { ExpirySweep } from "../storage/tables/expiry-sweep.ts";
import { SqlDeliveryStore } from "../storage/tables/notifications/delivery-store.ts";
import { SqlIncidentStore } from "../storage/tables/notifications/incident-store.ts";
import { SqlKeySurvey } from "../storage/tables/notifications/key-survey.ts";
import { SqlNotificationMutes } from "../storage/tables/notifications/mute-store.ts";
import { SqlNotificationStore } from "../storage/tables/notifications/notification-store.ts";
import { SqlWebhookStore } from "../storage/tables/notifications/webhook-store.ts";
import { SqlLimitRequestStore } from "../storage/tables/people/limit-request-store.ts";
import type { Governance } from "./governance.ts";
import type { ModelRouting } from "./model-routing.ts";
import type { Opened } from "./opened.ts";
import type { People } from "./people.ts";

/** Intervals that tests shorten; the defaults apply if absent. */
export interface NotificationTimes {
  /** The interval of checking quotas, incidents and the queue. */
  everyMs?: number;
  posting?: Partial<Pick<PostOptions, "resolve" | "timeoutMs" | "ca">>;
}

export interface NotificationOptions {
  db: Database;
  config: Config;
  governance: Governance;
  people: Pick<People, "people" | "issuer">;
  routing: Pick<ModelRouting, "catalog" | "sources" | "router" | "network" | "healths">;
  replicas: Replicas;
  /** The observer of all requests. The observer that `openNotifications` returns replaces it. */
  observer: Observer;
  clock: Clock;
  log: Log;
  times: NotificationTimes | undefined;
  opened: Opened;
}

export type NotificationParts = ReturnType<typeof openNotifications>;

/** The interval of deleting expired notifications. */
const sweepMs = 600_000;

export function openNotifications(options: NotificationOptions) {
  const { db, config, governance, replicas, clock, log, times = {}, opened } = options;
  const often = times.everyMs === undefined ? {} : { everyMs: times.everyMs };
  const [store, webhookStore, deliveries] = [
    new SqlNotificationStore(db),
    new SqlWebhookStore(db),
    new SqlDeliveryStore(db),
  ];
  const rules: EgressRules = { allowLoopback: config.webhookLoopback };
  const operatorRules: EgressRules = { ...rules, networks: permittedNetworks(config.webhookNetworks) };
  // A separate mailer: the slots of the sign-in mailer are for people who wait at a page.
  const mail = config.mail && new SmtpMailer(config.mail);
  const deliverer = opened.add(
    new Deliverer({
      ...{ deliveries, notices: store, webhooks: webhookStore, people: options.people.people, mail, clock, log },
      sealFor: governance.contentSeal,
      posting: { rules, resolve: resolveBySystem, ...times.posting },
      operatorRules,
      publicOrigin: options.people.issuer,
      ...often,
    }),
  );
  const wake = () => deliverer.wake();
  const teller = new Notifications({ store, clock, log, mails: mail !== undefined, wake });
  opened.add(
    new ExpirySweep({ what: "notice", store, deletionClock: governance.deletionClock, log, everyMs: sweepMs }),
  );

  const quotaWatch = opened.add(new QuotaWatch({ limits: governance.limits, teller, log, ...often }));
  const errorWatch = new ErrorWatch(options.observer, clock);
  const outages = new Outages(outageSources(options.routing), clock);
  const incidentWatch = opened.add(
    new IncidentWatch({
      ...{ store: new SqlIncidentStore(db), teller, clock, log },
      sources: [() => outages.states(), () => errorWatch.states()],
      replicaId: replicas.id,
      live: () => replicas.live(),
      ...often,
    }),
  );
  // The other replicas learn of the change now rather than by the next heartbeat.
  options.routing.healths.onChange = () => {
    void replicas.refresh();
    void incidentWatch.check();
  };
  const keyWatch = opened.add(
    new KeyWatch({
      ...{ survey: new SqlKeySurvey(db), rotations: governance.keyRotations, teller, clock, log },
      endingModels: () => endingModels(options.routing.catalog),
      isFirst: () => (replicas.live()[0]?.id ?? replicas.id) === replicas.id,
    }),
  );
  return {
    observer: errorWatch,
    errorWatch,
    quotaWatch,
    incidentWatch,
    keyWatch,
    deliverer,
    teller,
    figures: () => ({ notifications: teller.figures, deliveries: deliverer.figures }),
    routes: {
      webhooks: new Webhooks({
        ...{ store: webhookStore, notices: store, sealFor: governance.contentSeal, rules, operatorRules, wake },
      }),
      webhookDeliveries: deliveries,
      limitRequests: limitRequestsOf(options, teller),
      notificationMutes: new SqlNotificationMutes(db),
      areNotificationsMailed: mail !== undefined,
    },
  };
}

function limitRequestsOf({ db, people: { people }, governance: { changed } }: NotificationOptions, teller: Notifier) {
  const store = new SqlLimitRequestStore(db);
  return new LimitRequests({ store, people, notify: (tidings) => teller.notify(tidings), changed });
}

function endingModels(catalog: ModelRouting["catalog"]): EndingModel[] {
  return catalog.list().flatMap(({ id, shutdownAt }) => (shutdownAt === undefined ? [] : { id, shutdownAt }));
}

function outageSources({ sources, router, network, healths }: NotificationOptions["routing"]): OutageSources {
  return {
    attempts: () => healths.seen().filter(({ upstream }) => !router.drained.has(upstream)),
    upstreams: () =>
      sources
        .known()
        .filter(({ source, name }) => source !== "built-in" && source !== "node" && !router.drained.has(name))
        .map(({ name, engine }) => ({ name, isWell: router.engineState(engine) === "ok" })),
    nodes: () =>
      network.directory
        .records()
        .filter(({ name, lastSeenAt }) => lastSeenAt !== null && !router.drained.has(name))
        .map(({ id, name }) => ({ id, name, isConnected: network.directory.locate(id) !== undefined })),
  };
}
