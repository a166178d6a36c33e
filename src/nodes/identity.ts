// A node proves its identity by an Ed25519 signature of a message that is different for each connection.
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";

export interface NodeKeyPair {
  /** Public key: 32 bytes in base64url. The gateway stores it. */
  publicKey: string;
  /** Private key: PKCS #8 in base64url. It never leaves the node. */
  privateKey: string;
}

/** The signed values. A signature is valid only for this gateway, node, connection and protocol version. */
export interface ProofText {
  /** WebSocket subprotocol, which contains the major version. */
  protocol: string;
  /** The gateway's own URL, which the node got when it joined. */
  gateway: string;
  nodeId: string;
  /** Random value that the gateway chose for this connection, in base64url. */
  nonce: string;
}

const publicKeyBytes = 32;
const signatureBytes = 64;

export function newNodeKey(): NodeKeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKey.export({ format: "jwk" }).x as string,
    privateKey: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64url"),
  };
}

/** Reports whether the text has the form of a node's public key. */
export function isPublicKey(publicKey: string): boolean {
  return isBytes(publicKey, publicKeyBytes);
}

/** Returns the signature in base64url. Throws if the key is invalid. */
export function signProof(privateKey: string, text: ProofText): string {
  const key = createPrivateKey({ key: Buffer.from(privateKey, "base64url"), format: "der", type: "pkcs8" });
  if (key.asymmetricKeyType !== "ed25519") throw new TypeError("The key of a node must be an Ed25519 key.");
  return sign(null, bytesOf(text), key).toString("base64url");
}

export function verifyProof(publicKey: string, text: ProofText, signature: string): boolean {
  if (!isPublicKey(publicKey) || !isBytes(signature, signatureBytes)) return false;
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    return verify(null, bytesOf(text), key, Buffer.from(signature, "base64url"));
  } catch {
    return false;
  }
}

/** Returns the bytes to sign. They begin with their purpose, so that the signature is useless for any other. */
function bytesOf({ protocol, gateway, nodeId, nonce }: ProofText): Buffer {
  return Buffer.from(JSON.stringify(["headrace node authentication", protocol, gateway, nodeId, nonce]));
}

/** Reports whether the text is the only valid base64url encoding of this many bytes. */
function isBytes(text: string, count: number): boolean {
  const bytes = Buffer.from(text, "base64url");
  return bytes.length === count && bytes.toString("base64url") === text;
}
