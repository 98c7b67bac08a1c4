// Swift: a sign-in of a native application (docs/other-languages.md). The tests do not run this file.
import Foundation

struct Nonce: Decodable { let nonceId, message: String }
struct SignedIn: Decodable { let token: String }
struct Refusal: Decodable, Error { let code: String }

let session = URLSession(configuration: .ephemeral) // keeps no cookies on disk

func post<Answer: Decodable>(_ path: String, _ body: [String: String]) async throws -> Answer {
  var request = URLRequest(url: URL(string: "https://auth.example/api/auth/\(path)")!)
  request.httpMethod = "POST"
  request.httpShouldHandleCookies = false
  request.setValue("application/json", forHTTPHeaderField: "content-type")
  request.httpBody = try JSONEncoder().encode(body)
  let (data, response) = try await session.data(for: request)
  guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw try JSONDecoder().decode(Refusal.self, from: data) }
  return try JSONDecoder().decode(Answer.self, from: data)
}

/// Returns the session's token, for the Keychain.
func signIn(sign: (String) async throws -> (publicKeyHex: String, signatureHex: String)) async throws -> String {
  let nonce: Nonce = try await post("wallet/nonce", ["purpose": "sign_in"])
  let proof = try await sign(nonce.message)
  let signedIn: SignedIn = try await post("wallet/verify",
    ["nonceId": nonce.nonceId, "publicKeyHex": proof.publicKeyHex, "signatureHex": proof.signatureHex])
  return signedIn.token
}
