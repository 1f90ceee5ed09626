// Puts the invitation of a link into the form. It stands after the # since browsers never send that part by themselves:
// no log of a server or proxy holds it, and no program that looks at links in mails can use it up.
const invitation = location.hash.slice(1);
if (invitation) {
  const field = document.getElementById("invitation");
  field.value = invitation;
  field.closest("p").hidden = true;
}
