// Schemas of passkeys, and of what browsers send and receive for them (WebAuthn Level 3, 5.1).
import { z } from "zod";
import { deletedShape, unixSeconds } from "../parts.ts";

/**
 * The maximum is far higher than any authenticator needs. An attestation without certificates has some hundred bytes.
 */
const bytes = (most: number) => z.string().max(most).describe("base64url, as the browser returns it.");

const credential = {
  id: bytes(1_400),
  rawId: bytes(1_400),
  type: z.literal("public-key"),
  clientExtensionResults: z.looseObject({}),
  authenticatorAttachment: z.string().max(100).nullish(),
};

const registrationResponse = z
  .looseObject({
    ...credential,
    response: z.looseObject({
      clientDataJSON: bytes(8_192),
      attestationObject: bytes(16_384),
      transports: z.array(z.string().max(32)).max(16).nullish(),
    }),
  })
  .describe("Result of `navigator.credentials.create()` as JSON.");

const authenticationResponse = z
  .looseObject({
    ...credential,
    response: z.looseObject({
      clientDataJSON: bytes(8_192),
      authenticatorData: bytes(8_192),
      signature: bytes(4_096),
      userHandle: bytes(128).nullish(),
    }),
  })
  .describe("Result of `navigator.credentials.get()` as JSON.");

const passkeyName = z.string().min(1).max(60).describe("Name of the passkey, in one line.");

export const addPasskeyRequest = z
  .object({ name: passkeyName, response: registrationResponse })
  .meta({ id: "AddPasskeyRequest" });

export const updatePasskeyRequest = z.object({ name: passkeyName }).meta({ id: "UpdatePasskeyRequest" });

export const passkeySignInRequest = z
  .object({
    challenge_id: z.string().min(1).max(100).describe("Id returned with the options."),
    response: authenticationResponse,
    next: z.string().max(4_096).nullish().describe("Path on this server to open after sign-in."),
  })
  .meta({ id: "PasskeySignInRequest" });

export const passkeyShape = z
  .object({
    object: z.literal("passkey"),
    id: z.string(),
    name: z.string(),
    backed_up: z.boolean().describe("True if the passkey is backed up or synced beyond one device."),
    created_at: unixSeconds,
    last_used_at: unixSeconds.nullable(),
  })
  .meta({ id: "Passkey" });

export const deletedPasskey = deletedShape("passkey.deleted", "DeletedPasskey");

/** The options in the form that the browser's own interface has. */
export const creationOptions = z
  .looseObject({ challenge: z.string() })
  .meta({ id: "PasskeyCreationOptions", description: "`PublicKeyCredentialCreationOptionsJSON`." });

export const passkeySignInOptions = z
  .object({
    challenge_id: z.string(),
    options: z.looseObject({ challenge: z.string() }).describe("`PublicKeyCredentialRequestOptionsJSON`."),
  })
  .meta({ id: "PasskeySignInOptions" });

export const passkeySignedIn = z
  .object({ next: z.string().describe("Path to open next.") })
  .meta({ id: "PasskeySignedIn" });
