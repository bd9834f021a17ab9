"""The words the rules know, as data: whom people have, what they do for a living, what they eat, suffer from and own.

To teach the extractor a word, add it here; an underscore stands for a space inside one. Nothing is compiled at import.
"""

from __future__ import annotations

from functools import cache
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


def _table(rows: dict[str, str]) -> dict[str, str]:
    return {word.replace("_", " "): meaning for meaning, words in rows.items() for word in words.split()}


# ---------------------------------------------------------------------------------------------------------- people, pets

RELATIVES: Final = _table(
    {
        "has_partner": "wife husband partner girlfriend boyfriend fiance fiancee fiancé fiancée spouse gf bf hubby",
        "has_child": "son daughter kid child baby toddler newborn stepson stepdaughter kids children sons daughters twins",
        "has_sibling": """brother sister sibling twin stepbrother stepsister half-brother half-sister brothers sisters
            siblings bro""",
        "has_parent": "mom mum mother dad father parent stepmom stepdad stepmother stepfather mama papa parents folks",
        "has_relative": """aunt uncle cousin niece nephew grandmother grandfather grandma grandpa granny grandson
            granddaughter grandson mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law
            nan godmother godfather godson goddaughter cousins grandparents grandkids grandchildren nieces nephews
            in-laws""",
        "has_friend": "friend buddy bestie mate pal friends",
        "has_colleague": """colleague coworker co-worker teammate cofounder co-founder intern assistant colleagues
            coworkers co-workers teammates mentee""",
        "has": """roommate flatmate housemate neighbor neighbour mentor therapist doctor dentist landlord trainer coach
            teacher professor advisor adviser supervisor tutor accountant lawyer roommates neighbors neighbours""",
        "manager": "manager boss",
    }
)
PETS: Final = _words(
    """dog cat puppy kitten hamster rabbit bunny parrot goldfish fish turtle tortoise horse pony snake lizard gecko bird
    ferret chinchilla budgie canary hedgehog iguana pup doggo pet corgi poodle labrador beagle dachshund husky pug
    terrier spaniel chihuahua bulldog greyhound collie dalmatian rottweiler labradoodle goldendoodle tabby chicken hen
    goat sheep pig llama alpaca donkey rat mouse tarantula axolotl cockatiel golden_retriever german_shepherd
    guinea_pig kitty border_collie french_bulldog maine_coon bearded_dragon great_dane rescue_dog rescue_cat"""
)
OLDER: Final = (
    "older younger little big best oldest youngest eldest elder new late twin dear close good ex old baby middle first "
    "second third only beloved lovely amazing wonderful former current dearest childhood elderly adopted partner"
)

# --------------------------------------------------------------------------------------------------------------- working

OCCUPATIONS: Final = _words(
    """engineer developer programmer scientist teacher nurse doctor lawyer attorney designer architect manager analyst
    consultant writer journalist editor author artist musician singer actor actress chef cook baker barista waiter
    waitress bartender accountant auditor banker broker trader economist professor lecturer researcher postdoc librarian
    pharmacist dentist surgeon physician paramedic therapist psychologist psychiatrist counselor counsellor vet
    veterinarian electrician plumber carpenter mechanic welder builder driver pilot sailor soldier officer policeman
    policewoman firefighter farmer gardener florist photographer filmmaker videographer director producer composer
    translator interpreter tutor coach trainer instructor recruiter salesperson salesman saleswoman marketer realtor
    agent secretary receptionist assistant administrator admin clerk cashier founder cofounder co-founder entrepreneur
    freelancer contractor ceo cto cfo coo cpo vp president head lead principal sysadmin devops sre tester qa pm
    intern apprentice technician biologist chemist physicist mathematician statistician astronomer geologist historian
    philosopher linguist sociologist anthropologist politician diplomat judge paralegal notary priest pastor imam rabbi
    monk nun hairdresser barber stylist tailor model dancer comedian youtuber streamer blogger podcaster copywriter
    illustrator animator sculptor painter potter jeweler jeweller midwife nutritionist dietitian physiotherapist
    chiropractor optometrist radiologist cardiologist dermatologist oncologist pediatrician paediatrician anesthesiologist
    neurologist housewife househusband homemaker nanny babysitter cleaner janitor courier postman mailman butcher
    fisherman miner roofer mason surveyor planner strategist specialist coordinator supervisor executive associate
    officer detective investigator inspector dev swe teacher's_assistant flight_attendant social_worker bus_driver
    truck_driver stay-at-home_mom stay-at-home_dad retiree pensioner trucker hacker maintainer owner operator scholar
    novelist poet screenwriter playwright violinist pianist guitarist drummer cellist dj curator archivist landscaper
    caregiver carer sommelier brewer stockbroker actuary underwriter advisor adviser partner
    lifeguard referee umpire jockey athlete footballer skipper captain sergeant lieutenant colonel major
    bookkeeper storekeeper shopkeeper beekeeper locksmith blacksmith watchmaker optician hygienist geneticist
    epidemiologist ecologist meteorologist botanist zoologist archaeologist urologist urbanist cartographer"""
)
NOT_JOBS: Final = _words(
    """fan lover believer beginner newbie noob user person guy girl man woman human mess member speaker owner reader
    player partner head lead model major"""
)
"""Words that say no job alone, though they may in company: a major, but an army major."""

STUDENTS: Final = "student undergrad undergraduate freshman sophomore junior senior grad phd_student postgrad"
FIELDS: Final = _words(
    """tech it finance marketing sales healthcare education hr advertising banking consulting retail hospitality
    construction insurance logistics manufacturing media publishing fashion politics government academia biotech fintech
    cybersecurity security software engineering research law medicine real_estate journalism gaming entertainment
    automotive aerospace agriculture energy pharma telecom e-commerce ecommerce ai data_science machine_learning ml
    accounting architecture design customer_support customer_service operations procurement compliance web_development
    human_resources public_relations pr customer_success data_engineering film music robotics film_production tourism
    product_management product_design supply_chain private_equity venture_capital investment_banking crypto nonprofit
    nonprofits the_nonprofit_sector the_public_sector devops infosec data_analytics analytics digital_marketing"""
)

# ---------------------------------------------------------------------------------------------------------- body and soul

DIETS: Final = _words(
    """vegetarian vegan pescatarian pescetarian flexitarian omnivore carnivore keto paleo gluten-free dairy-free halal
    kosher plant-based low-carb fruitarian lacto-vegetarian teetotal teetotaler ovo-vegetarian vegitarian vegeterian
    gluten_free dairy_free low_carb sugar-free fodmap low-fodmap mediterranean low-sodium low-fat"""
)
CONDITIONS: Final = _words(
    """diabetes asthma adhd add ocd ptsd autism dyslexia epilepsy migraines migraine arthritis anxiety depression insomnia
    anemia anaemia hypertension celiac coeliac celiac_disease coeliac_disease crohn's crohn's_disease ibs eczema psoriasis
    lupus fibromyalgia endometriosis pcos hypothyroidism hyperthyroidism cancer tinnitus vertigo scoliosis sleep_apnea
    high_blood_pressure low_blood_pressure high_cholesterol type_1_diabetes type_2_diabetes bipolar_disorder
    social_anxiety hay_fever lactose_intolerance gluten_intolerance acid_reflux gerd bad_knees a_bad_back a_bad_knee
    chronic_pain chronic_back_pain chronic_fatigue back_pain osteoporosis glaucoma multiple_sclerosis ms parkinson's copd
    rosacea gout dysgraphia dyscalculia narcolepsy hemophilia sciatica a_heart_condition a_pacemaker tourette's
    parkinson's_disease alzheimer's dementia rheumatoid_arthritis ulcerative_colitis carpal_tunnel plantar_fasciitis
    color_blindness colour_blindness tendonitis a_herniated_disc a_slipped_disc seasonal_allergies"""
)
STATES: Final = _words(
    """diabetic asthmatic autistic dyslexic pregnant colorblind colourblind color-blind colour-blind color_blind
    colour_blind deaf epileptic anemic anaemic celiac coeliac bipolar lactose_intolerant lactose-intolerant
    gluten_intolerant gluten-intolerant near-sighted nearsighted short-sighted hard_of_hearing dyspraxic neurodivergent
    type_1_diabetic type_2_diabetic visually_impaired legally_blind immunocompromised"""
)
MEDICINES: Final = _words(
    """metformin insulin ibuprofen aspirin lisinopril levothyroxine sertraline prozac zoloft adderall ritalin xanax
    antidepressants statins atorvastatin melatonin omeprazole albuterol prednisone antihistamines vitamins warfarin
    blood_thinners beta_blockers ssris lexapro wellbutrin vyvanse concerta lithium gabapentin antibiotics painkillers
    birth_control the_pill magnesium creatine iron_supplements fish_oil escitalopram fluoxetine citalopram losartan
    amlodipine methotrexate humira ozempic wegovy semaglutide loratadine cetirizine zyrtec claritin propranolol
    ramipril duloxetine bupropion simvastatin rosuvastatin pantoprazole naproxen paracetamol"""
)
MEDICAL: Final = r"(?:vitamin [a-z]\d{0,2}|\w{3,}(?:pril|statin|formin|oxetine|azole|sartan|olol|mycin|cillin|azepam))"
TRAITS: Final = _words(
    """introvert extrovert night_owl early_bird morning_person dog_person cat_person people_person perfectionist optimist
    pessimist minimalist workaholic homebody foodie bookworm gamer feminist atheist agnostic christian muslim buddhist
    hindu catholic protestant jew mormon sikh twin orphan widow widower veteran insomniac nerd geek early_riser
    light_sleeper heavy_sleeper coffee_addict single_mom single_dad single_parent single_mother single_father lefty
    citizen immigrant expat nomad digital_nomad polyglot night_person people_pleaser picky_eater
    smoker non-smoker nonsmoker left-hander vegetarian_cook procrastinator hypochondriac libertarian socialist
    liberal conservative republican democrat humanist cyclist runner hiker climber swimmer surfer gardener golfer knitter
    skier snowboarder birder birdwatcher backpacker marathoner triathlete bodybuilder homeowner only_child middle_child
    leo virgo libra scorpio sagittarius capricorn aquarius pisces aries taurus gemini"""
)
TRAIT_ADJECTIVES: Final = _words(
    """introverted extroverted left-handed right-handed ambidextrous religious jewish catholic muslim christian buddhist
    hindu gay lesbian bisexual bi queer trans transgender nonbinary non-binary asexual pansexual straight dyslexic
    retired self-employed unemployed freelance bilingual trilingual claustrophobic arachnophobic
    lefthanded left_handed self-taught teetotal sober tattooed widowed"""
)
LOVE_LIFE: Final = _words("married single divorced engaged widowed separated")

# ------------------------------------------------------------------------------------------------------------- belonging

NATIONS: Final = _words(
    """american british english scottish welsh irish german french spanish italian portuguese dutch belgian swiss austrian
    polish czech slovak hungarian romanian bulgarian greek turkish russian ukrainian swedish norwegian danish finnish
    icelandic estonian latvian lithuanian serbian croatian slovenian albanian canadian mexican brazilian argentinian
    argentine chilean colombian peruvian venezuelan cuban australian chinese japanese korean vietnamese thai indonesian
    malaysian filipino indian pakistani bangladeshi iranian persian iraqi israeli arab egyptian moroccan nigerian kenyan
    ethiopian ghanaian south_african kiwi aussie texan californian bavarian catalan basque european african asian latino
    latina hispanic taiwanese singaporean lebanese syrian jordanian tunisian algerian bosnian georgian armenian"""
)
LANGUAGES: Final = _words(
    """english german french spanish italian portuguese dutch polish czech slovak hungarian romanian bulgarian greek
    turkish russian ukrainian swedish norwegian danish finnish icelandic estonian latvian lithuanian serbian croatian
    slovenian albanian chinese mandarin cantonese japanese korean vietnamese thai indonesian malay tagalog hindi urdu
    bengali tamil telugu punjabi persian farsi arabic hebrew swahili amharic yoruba igbo zulu afrikaans catalan basque
    galician welsh irish gaelic latin esperanto asl sign_language american_sign_language kurdish nepali mongolian
    marathi gujarati kannada malayalam sinhala khmer lao burmese georgian armenian azerbaijani kazakh uzbek yiddish
    deutsch englisch französisch spanisch italienisch français anglais español inglés francés"""
)
PLACE_STOPS: Final = _words(
    """fear peace harmony denial hope poverty luxury sin pain silence isolation moderation style mind total constant
    person touch charge trouble love general fact order case need part front doubt bed here there it this that
    them us me you him her one two mine yours theirs town school college work home hospital jail prison theory vain
    chaos squalor anticipation exile flats apartments debt danger shock awe agreement favor favour school"""
)

# ------------------------------------------------------------------------------------------------------------------ things

GADGETS: Final = _words(
    """car bike bicycle motorcycle motorbike scooter truck van boat yacht house apartment flat condo cottage cabin farm
    garden laptop macbook thinkpad pc desktop computer phone iphone pixel android ipad tablet kindle camera drone guitar
    piano violin drum_kit keyboard ukulele telescope tesla toyota honda ford bmw audi mercedes volvo subaru mazda jeep
    playstation ps5 xbox switch nintendo_switch steam_deck tv printer 3d_printer raspberry_pi watch apple_watch garmin
    treadmill peloton espresso_machine coffee_machine air_fryer instant_pot sewing_machine kayak canoe surfboard
    tent rv camper motorhome lawn_mower pool hot_tub sauna greenhouse record_player synthesizer home_gym home_office
    bookshop bakery restaurant cafe shop store startup company business bookstore vineyard e-bike ebike food_truck
    mustang corolla civic prius camry model_3 model_y golf vw volkswagen kia hyundai nissan porsche vespa dslr macbook_pro
    macbook_air surface chromebook gaming_pc gpu tractor cello trumpet saxophone banjo harp clarinet flute turntable"""
)
APPOINTMENTS: Final = _words(
    """appointment meeting interview exam flight trip wedding party vacation holiday conference deadline presentation
    concert surgery operation checkup check-up reservation date race marathon tournament recital graduation move
    anniversary due_date baby_shower reunion demo launch test final midterm class lesson workshop call hearing viewing
    dinner lunch gig show performance game match audition ceremony housewarming webinar train bus cruise hike retreat
    standup review release scan mri physical thesis_defense defense therapy_session session"""
)
NOUNS_OF_AN_EVENT: Final = _words("birthday anniversary due_date")
COMPOUNDS: Final = (
    "mac and cheese|rock and roll|rock'n'roll|rock & roll|fish and chips|bed and breakfast|dungeons and dragons|"
    "dungeons & dragons|arts and crafts|peanut butter and jelly|salt and vinegar|r and b|r&b|friends and family|"
    "family and friends|black and white|science and technology|bread and butter|biscuits and gravy|cookies and cream|"
    "ham and cheese|gin and tonic|gin & tonic|rum and coke|true crime and mystery|tom and jerry|rick and morty|"
    "guns n' roses|simon and garfunkel|research and development|r&d|food and beverage|supply and demand|law and order|"
    "parks and recreation|pride and prejudice|war and peace|crime and punishment|harry potter and|chicken and waffles|"
    "rice and beans|spaghetti and meatballs|pen and paper|trial and error|peace and quiet|track and field|"
    "barnes and noble|johnson and johnson|procter and gamble|marks and spencer|ernst and young|trinidad and tobago|"
    "bosnia and herzegovina|antigua and barbuda|drum and bass|country and western|sweet and sour|nuts and bolts"
)


ALSO_WORDS: Final = _words(
    "will mark rose robin jean frank dean sandy amber roman victor dawn angela jack bob rob rex max kai nia uma an jan"
)
"""Given names that are words too: in lower case they are read as the word."""


@cache
def first_names() -> frozenset[str]:
    """Given names common enough to be known in lower case."""
    return _words(
        """aaron abby abdul abigail adam adele adrian agnes ahmed aisha alan albert alejandra alejandro alessandro alex
        alexander alexandra alexei alfred ali alice alicia alina alison allison amanda amber amelia amina amir amit amy ana
        anastasia anders andre andrea andreas andrei andrew andy angela anil anita anja ann anna anne annie anthony antoine
        antonio anya arjun arthur ashley audrey aya barbara bartek ben benjamin bernd beth bianca bob boris brandon brenda
        brian bruno camila camille carl carla carlos carmen carol carolina caroline catherine cecilia charles charlie
        charlotte chen chloe chris christina christine christopher claire clara claudia colin connor daniel daniela danielle
        danny daria darren dave david dean deborah deepak denise dennis derek diana diego dieter dimitri dmitri dominic
        donald donna doris dorothy doug dylan edith eduardo edward elena eli elias elijah elisa elise elizabeth ella ellen
        elliot emil emilia emilie emily emma enrique eric erica erik erin esther ethan eugene eva evan evelyn fabian fatima
        felix fernando fiona florian frances francesca francesco francis francisco frank franz fred frederic frida gabriel
        gabriela gary gavin george gerald gerhard gianni gina giovanni giulia giuseppe gloria gonzalo gordon greg gregory
        guillaume gustav hannah hans harold harriet harry hassan hector heidi heinrich helen helena henri henry hiroshi hugo
        ian ibrahim ida igor ines ingrid irene irina isaac isabel isabella isabelle ivan jack jackie jacob jacques jake james
        jamie jan jane janet jason javier jean jeff jeffrey jenna jennifer jenny jeremy jessica jill jim jimmy joan joana joe
        joel johan johann johanna john johnny jon jonas jonathan jordan jorge jose josef josh joshua juan judith julia julian
        julie julien jürgen karen karim karin karl karolina kate katharina katherine kathleen katie katrin kavya keiko keith
        kelly ken kenji kenneth kevin khalid kim klaus kristen kumar kyle lars laura lauren laurent lea leah leila lena leo
        leon leonardo leonie leslie liam lily linda lisa liz lola lorenzo louis louise luca lucas lucia lucy luis luisa lukas
        luke luna madison magdalena maggie mahmoud manuel marc marcel marco marcos marcus margaret maria mariam marie marina
        mario marion mark marko marta martha martin martina mary mateo matteo matt matthew matthias maurice max maya megan
        mehmet mei melanie melissa mia michael michel michelle miguel mika mike mila milo miranda miriam mohamed mohammed
        molly monica monika moritz muhammad nadia nadine nancy naomi natalia natalie natasha nathan neha neil nicholas nick
        nicola nicolas nicole niklas nikolai nils nina noah nora oleg oliver olivia omar oscar otto owen pablo pamela paola
        patricia patrick paul paula paulo pavel pedro penelope peter petra philip philipp philippe phoebe pierre piotr priya
        rachel rafael rahul raj ralf ralph ravi raymond rebecca renata rex ricardo richard rick rita rob robert roberto robin
        rodrigo roger rohan roland roman ron rosa rose rosie roy ruben rupert russell ruth ryan sabine sally sam samantha
        samir samuel sandra sandy sanjay santiago sara sarah scott sean sebastian sergei sergio shane sharon sheila shirley
        silvia simon simone sofia sonia sophia sophie stefan stefanie stella stephanie stephen steve steven stuart sunita
        susan susanne suzanne sven sylvia tamara tanya tara ted teresa terry thea theo theresa thiago thomas tiffany tim
        timothy tina tobias todd tom tomas tommy toni tony tracy tyler ulrich ursula valentina valerie vanessa vera veronica
        victor victoria vijay viktor vincent viola virginia vivian vladimir walter wanda wei wendy werner will william wolfgang
        xavier yan yara yasmin yuki yusuf yvonne zach zachary zara zoe oleksandr olena katya misha sasha nikita arun anika
        ayesha dana hana hank kai lara leni lina malik nate nia noor quinn rosalie tariq tess uma vic zainab"""
    )


# -------------------------------------------------------------------------------------------------------------- patterns

VERY: Final = (
    "very|really|quite|super|so|mildly|severely|deathly|highly|extremely|slightly|a bit|a little|pretty|totally|strictly|"
    "terribly|seriously|lifelong|strict|proud|ethical|practicing|devout|also|actually|fully|mostly|basically|fairly|huge"
)
LIFE: Final = (
    r"(?:learn|run|lose|gain|become|buy|visit|travel|move|save|quit|retire|climb|read|master|switch|get (?:better|fit|married|"
    r"promoted|into|a (?:job|dog|cat|promotion|degree|phd|puppy|new job)|in shape|my|back|healthier|stronger|pregnant|published)|"
    r"write (?:a|my|an) (?:\w+ )?(?:book|novel|memoir|screenplay)|start (?:a|an|my(?: own)?) (?:\w+ )?(?:business|company|family|"
    r"startup|podcast|blog|garden|band|farm|newsletter|bakery|restaurant)|open (?:a|an|my(?: own)?)|stop (?:smoking|drinking|"
    r"eating)|eat (?:healthier|less|more|better)|go (?:back|to|vegan|on)|finish (?:my|the)|graduate|adopt|pay off|improve my|"
    r"speak|play|see the|live (?:in|by|near|abroad|to)|work (?:at|in (?!the future)|for|as|abroad|remotely)|study|hike|swim|cut (?:back|down|out)|be(?:come)? (?:a|an|"
    r"more|able|fluent|healthier|better)|publish|own|have (?:kids|children|a (?:family|baby))|teach|volunteer|exercise|sleep "
    r"(?:more|better)|meditate|lift|bench|complete|pass|earn|change (?:careers|jobs)|relocate|spend more|drink (?:more|less)|"
    r"work out|join)\b"
)
"""What people want to do with their lives, as opposed to what they want of an assistant just now."""

REACTION: Final = (
    r"(?:all |both )?(?:the|those|these) (?!outdoors|ocean|beach|mountains|sea|rain|snow|countryside|cold|heat|sun|smell of|taste of|"
    r"sound of|theater|theatre|opera|gym|piano|guitar|violin|beatles|office|lakers|yankees|simpsons)(?-i:[a-z])"
)
"""How people speak of what they have just been shown, which is no lasting taste."""

TOOLS: Final = (
    r"python|java|javascript|typescript|rust|go|golang|c\+\+|c#|ruby|php|swift|kotlin|scala|haskell|sql|html|css|react|vue|"
    r"angular|node(?:\.js)?|django|flask|fastapi|docker|kubernetes|aws|gcp|azure|terraform|linux|bash|git|excel|photoshop|figma|"
    r"blender|matlab|r|pytorch|tensorflow|pandas|numpy|spark|elixir|clojure|perl|lua|julia|fortran|cobol|assembly"
)
