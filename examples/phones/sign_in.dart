// Flutter: a sign-in of a native application (docs/other-languages.md). The tests do not run this file.
import 'dart:convert';
import 'package:flutter_secure_storage/flutter_secure_storage.dart';
import 'package:http/http.dart' as http;

const auth = 'https://auth.example/api/auth';

Future<Map<String, dynamic>> post(String path, Map<String, dynamic> body) async {
  final response = await http.post(Uri.parse('$auth/$path'),
      headers: {'content-type': 'application/json'}, body: jsonEncode(body));
  final answer = jsonDecode(response.body) as Map<String, dynamic>;
  if (response.statusCode != 200) throw Exception(answer['code']);
  return answer;
}

Future<void> signIn(Future<Map<String, String>> Function(String message) sign) async {
  final nonce = await post('wallet/nonce', {'purpose': 'sign_in'});
  final proof = await sign(nonce['message'] as String); // publicKeyHex and signatureHex
  final session = await post('wallet/verify', {'nonceId': nonce['nonceId'], ...proof});
  await const FlutterSecureStorage().write(key: 'countersign.token', value: session['token'] as String);
}
