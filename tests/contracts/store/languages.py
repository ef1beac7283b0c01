"""Texts of scripts and languages whose words a database does not know, what is asked for, and a text without it."""

SCRIPTS = {
    "Chinese": ("会员费每年五十欧元。", "会员费", "图书馆星期一关门。"),
    "one Chinese character": ("院子里有一只猫。", "猫", "院子里有一只狗。"),
    "Japanese": ("図書館のカードは無料です。", "図書館", "会費は毎年五千円です。"),
    "Japanese in kana": ("コンピューターを使えます。", "コンピュータ", "会費は毎年五千円です。"),
    "Thai": ("ค่าสมาชิกห้องสมุดปีละห้าสิบบาท", "ห้องสมุด", "ร้านอาหารเปิดทุกวัน"),
    "a short Thai word": ("เด็กกินข้าวที่บ้าน", "กิน", "ร้านอาหารเปิดทุกวัน"),
    "Korean": ("도서관은 월요일에 닫습니다.", "도서관", "회비는 오만 원입니다."),
    "the end of a German compound": ("Der Mitgliedsbeitrag ist im Januar fällig.", "Beitrag", "Das Heim ist offen."),
    "the beginning of a German compound": (
        "Ein Bibliotheksausweis kostet nichts.",
        "Bibliothek",
        "Das Heim ist offen.",
    ),
    "a part in its plural": ("Die Mitgliedsbeiträge sind nicht gleich.", "Beitrag", "Das Heim ist offen."),
    "Russian": ("Книги выдают по средам.", "книгу", "Взнос платят весной."),
    "a Russian adjective": ("Членские взносы платят весной.", "членский взнос", "Книги выдают по средам."),
}
"""What is searched, what is asked for, and another text of the same language, which must not be found."""
