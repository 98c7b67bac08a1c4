// Kotlin with OkHttp, which keeps no cookies by default. Call it outside the main thread: a sign-in of a native application (docs/other-languages.md). The tests do not run this file.
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.json.JSONObject

private const val AUTH = "https://auth.example/api/auth"
private val client = OkHttpClient()

private fun post(path: String, body: JSONObject): JSONObject {
    val request = Request.Builder().url("$AUTH/$path")
        .post(body.toString().toRequestBody("application/json".toMediaType())).build()
    client.newCall(request).execute().use { response ->
        val answer = JSONObject(response.body!!.string())
        check(response.isSuccessful) { answer.getString("code") }
        return answer
    }
}

/** Returns the session's token, to be kept encrypted under a key of the Android Keystore. */
fun signIn(sign: (message: String) -> Pair<String, String>): String {
    val nonce = post("wallet/nonce", JSONObject().put("purpose", "sign_in"))
    val (publicKeyHex, signatureHex) = sign(nonce.getString("message"))
    val proof = JSONObject().put("nonceId", nonce.getString("nonceId"))
        .put("publicKeyHex", publicKeyHex).put("signatureHex", signatureHex)
    return post("wallet/verify", proof).getString("token")
}
